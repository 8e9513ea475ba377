-- Makes a schema that the role of that name owns.
CREATE SCHEMA {name} AUTHORIZATION {name}
