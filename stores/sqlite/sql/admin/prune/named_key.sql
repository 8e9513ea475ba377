-- Finds the key of an instance that has a row.
SELECT key FROM instances WHERE instance = ?1 AND name IS NOT NULL
