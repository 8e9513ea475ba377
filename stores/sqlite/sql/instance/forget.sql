-- Removes the row of an instance id without an orchestration, if no other row refers to it.
DELETE FROM instances
WHERE key = ?1
  AND name IS NULL
  AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.key = ?1 AND state = 0)
  AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.key = ?1 AND state = 1)
  AND NOT EXISTS (SELECT 1 FROM history WHERE history.key = ?1)
  AND NOT EXISTS (SELECT 1 FROM executions WHERE executions.key = ?1)
  AND NOT EXISTS (SELECT 1 FROM work WHERE work.key = ?1)
