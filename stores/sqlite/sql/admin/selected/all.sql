-- Lists instances, oldest first, in a bounded batch; with ?1 only those that ended before that time (F13).
SELECT instances.ord, instances.key, instances.instance FROM instances
LEFT JOIN executions ON executions.key = instances.key AND executions.execution = instances.current_execution
WHERE instances.name IS NOT NULL AND (?1 IS NULL OR executions.completed_at < ?1)
ORDER BY instances.ord LIMIT ?2
