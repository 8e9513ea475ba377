-- Reads the id of an instance's parent.
SELECT parent FROM instances WHERE instance = ?1 AND name IS NOT NULL
