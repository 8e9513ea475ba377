-- Lists instances, oldest first: with ?1 only roots (a child whose parent was deleted counts as one), with ?2
-- only those that ended before that time (F13).
SELECT instances.instance, instances.key FROM instances
LEFT JOIN executions ON executions.key = instances.key AND executions.execution = instances.current_execution
WHERE instances.name IS NOT NULL
  AND (NOT ?1 OR instances.parent IS NULL OR NOT EXISTS (
      SELECT 1 FROM instances AS parents WHERE parents.instance = instances.parent
          AND parents.name IS NOT NULL
  ))
  AND (?2 IS NULL OR executions.completed_at < ?2)
ORDER BY instances.ord
