-- Reads the life of an instance, and the life of the parent that started it.
SELECT ord, parent_life FROM instances WHERE key = ?1 AND name IS NOT NULL
