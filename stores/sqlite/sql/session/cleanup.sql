-- Removes sessions without a live lease and without work, if they are shared or their instance does not exist
-- (S13).
DELETE FROM sessions
WHERE is_row = 1
  AND NOT (held = 1 AND locked_until > ?1)
  AND (instance = '' OR NOT EXISTS (
      SELECT 1 FROM instances WHERE instances.instance = sessions.instance AND instances.name IS NOT NULL
  ))
  AND NOT EXISTS (SELECT 1 FROM work WHERE work.session = sessions.id)
