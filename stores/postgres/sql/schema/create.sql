-- Creates the schema.
CREATE SCHEMA {schema}
