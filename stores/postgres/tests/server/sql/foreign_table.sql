-- Makes a table in a schema as another application would.
CREATE SCHEMA {name};
CREATE TABLE {name}.history (mine INT)
