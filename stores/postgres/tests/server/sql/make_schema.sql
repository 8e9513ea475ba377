-- Makes a schema of that name.
CREATE SCHEMA {name}
