-- Removes the schema of a test with all that is in it.
DROP SCHEMA IF EXISTS "{name}" CASCADE
