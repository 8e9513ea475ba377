-- Reads the table of a queue with its indexes and triggers, as they were created.
SELECT type, name, sql FROM sqlite_schema WHERE tbl_name = ?1 AND sql IS NOT NULL
