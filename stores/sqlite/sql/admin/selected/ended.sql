-- Lists roots that ended before ?1, in a bounded batch of no order: those without a parent, those whose
-- parent was deleted, and those that continued as new and have not gone on.
SELECT ord, key, instance FROM instances
WHERE ended_at IS NOT NULL AND parent IS NULL AND name IS NOT NULL AND ended_at < ?1
UNION ALL
SELECT ord, key, instance FROM instances
WHERE ended_at IS NOT NULL AND orphan = 1 AND name IS NOT NULL AND ended_at < ?1
UNION ALL
SELECT instances.ord, instances.key, instances.instance FROM instances INDEXED BY instances_status
JOIN executions ON executions.key = instances.key AND executions.execution = instances.current_execution
WHERE instances.name IS NOT NULL AND instances.current_status = 'ContinuedAsNew'
  AND (instances.parent IS NULL OR instances.orphan = 1) AND executions.completed_at < ?1
LIMIT ?2
