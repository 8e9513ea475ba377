-- Makes a scratch schema.
CREATE SCHEMA {schema}
