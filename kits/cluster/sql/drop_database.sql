-- Removes the database of a test; sessions that are still open in it are ended.
DROP DATABASE IF EXISTS "{name}" WITH (FORCE)
