-- Tells whether an instance has this life.
SELECT EXISTS (SELECT 1 FROM instances WHERE instance = ?1 AND name IS NOT NULL AND ord = ?2)
