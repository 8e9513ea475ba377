-- Makes the schema.
CREATE SCHEMA {schema}
