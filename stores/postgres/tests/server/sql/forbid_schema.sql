-- Takes the right to make something in a schema from everybody.
REVOKE ALL ON SCHEMA {name} FROM PUBLIC
