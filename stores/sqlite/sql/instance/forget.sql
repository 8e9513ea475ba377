-- Removes the row of an instance id without an orchestration, if no other row refers to it. A message or an
-- activity that was given up where it is does not, unless it was set aside and can be tried again.
DELETE FROM instances
WHERE key = ?1
  AND name IS NULL
  AND NOT EXISTS (
      SELECT 1 FROM messages WHERE messages.key = ?1 AND state = 0
          AND NOT EXISTS (SELECT 1 FROM torn_messages WHERE row = messages.seq AND until IS NULL)
  )
  AND NOT EXISTS (
      SELECT 1 FROM messages WHERE messages.key = ?1 AND state = 1
          AND NOT EXISTS (SELECT 1 FROM torn_messages WHERE row = messages.seq AND until IS NULL)
  )
  AND NOT EXISTS (
      SELECT 1 FROM set_aside
      WHERE torn IS NOT NULL AND instance = (SELECT instance FROM instances WHERE key = ?1)
  )
  AND NOT EXISTS (SELECT 1 FROM history WHERE history.key = ?1)
  AND NOT EXISTS (SELECT 1 FROM executions WHERE executions.key = ?1)
  AND NOT EXISTS (
      SELECT 1 FROM work WHERE work.key = ?1
          AND NOT EXISTS (SELECT 1 FROM torn_work WHERE row = work.seq AND until IS NULL)
  )
