-- Makes a schema with something in it.
CREATE SCHEMA "{name}" CREATE TABLE kept (value integer)
