-- Lists executions of an instance that may be removed: not the newest ?2, not the current one, and not one
-- that runs; with ?3 only those that ended before that time.
SELECT execution FROM executions
WHERE key = ?1
  AND execution NOT IN (SELECT execution FROM executions WHERE key = ?1 ORDER BY execution DESC LIMIT ?2)
  AND execution <> (SELECT current_execution FROM instances WHERE key = ?1)
  AND status <> 'Running'
  AND (?3 IS NULL OR completed_at < ?3)
ORDER BY execution
