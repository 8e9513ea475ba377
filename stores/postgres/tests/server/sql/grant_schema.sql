-- Lets the role of that name work in the schema of that name.
GRANT USAGE, CREATE ON SCHEMA {name} TO {name}
