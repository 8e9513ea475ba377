-- Lists instances that match, newest first, behind the cursor ?1: found by the status of their current
-- execution.
SELECT instances.instance, instances.name, instances.version, instances.current_execution,
    instances.custom_status, instances.custom_status_version, instances.parent, instances.created_at,
    instances.updated_at, instances.change, executions.status, executions.output, executions.failure, NULL,
    instances.ord
FROM instances INDEXED BY instances_status
LEFT JOIN executions ON executions.key = instances.key AND executions.execution = instances.current_execution
WHERE instances.name IS NOT NULL
  AND instances.current_status = ?2
  AND instances.ord < ?1
  AND (?3 IS NULL OR instances.name = ?3)
  AND (?4 IS NULL OR (instances.instance >= ?4 AND instances.instance < coalesce(?5, x'')))
  AND (?6 IS NULL OR instances.parent = ?6)
  AND (NOT ?7 OR instances.parent IS NULL)
ORDER BY instances.ord DESC LIMIT ?8
