-- Lists roots that do not run, oldest first, behind the order ?1, in a bounded batch: a child whose parent
-- was deleted counts as one. With ?2 only those that ended before that time (F13).
SELECT instances.ord, instances.key, instances.instance FROM instances INDEXED BY instances_deletable
LEFT JOIN executions ON executions.key = instances.key AND executions.execution = instances.current_execution
WHERE instances.name IS NOT NULL AND instances.current_status <> 'Running'
  AND (instances.parent IS NULL OR instances.orphan = 1)
  AND instances.ord > ?1
  AND (?2 IS NULL OR executions.completed_at < ?2)
ORDER BY instances.ord LIMIT ?3
