-- Makes the schema if it is not there.
CREATE SCHEMA IF NOT EXISTS {schema}
