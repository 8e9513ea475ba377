-- Drops the schema of a test with all its objects.
DROP SCHEMA IF EXISTS "{name}" CASCADE
