-- Finds the instance ?3: with ?1 only a root (a child whose parent was deleted counts as one), with ?2 only
-- one that ended before that time (F13).
SELECT instances.ord, instances.key, instances.instance FROM instances
LEFT JOIN executions ON executions.key = instances.key AND executions.execution = instances.current_execution
WHERE instances.instance = ?3 AND instances.name IS NOT NULL
  AND (NOT ?1 OR instances.parent IS NULL OR instances.orphan = 1)
  AND (?2 IS NULL OR executions.completed_at < ?2)
