-- Drops the database of a test and ends the connections that are still open in it.
DROP DATABASE IF EXISTS "{name}" WITH (FORCE)
