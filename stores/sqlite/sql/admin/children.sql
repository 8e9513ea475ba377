-- Lists the direct children of an instance.
SELECT instance FROM instances WHERE parent = ?1 AND name IS NOT NULL ORDER BY instance
