-- Names the parent of an instance.
SELECT parent FROM instances WHERE instance = ?1 AND name IS NOT NULL
