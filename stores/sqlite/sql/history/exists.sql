-- Tells whether an instance has any history.
SELECT EXISTS (SELECT 1 FROM history WHERE key = ?1)
