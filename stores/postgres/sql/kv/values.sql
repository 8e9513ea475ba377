-- Reads all keys and values: from the current execution where it changed a key, else as earlier executions
-- left them. Locks: none.
SELECT seen.key, seen.value FROM {schema}.kv AS seen
WHERE seen.instance_id = $1
  AND seen.value IS NOT NULL
  AND NOT (seen.layer = 0 AND EXISTS (
      SELECT 1 FROM {schema}.kv AS changed
      WHERE changed.instance_id = $1 AND changed.layer = 1 AND changed.key = seen.key
  ))
