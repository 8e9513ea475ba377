-- Lists instances that match, newest first, behind the cursor ?1: found by their ids, from ?4 up to ?5, and
-- sorted. For a prefix that few ids have. A blob sorts behind all texts.
SELECT instances.instance, instances.name, instances.version, instances.current_execution,
    instances.custom_status, instances.custom_status_version, instances.parent, instances.created_at,
    instances.updated_at, instances.change, executions.status, executions.output, executions.failure, NULL,
    instances.ord
FROM instances INDEXED BY sqlite_autoindex_instances_1
LEFT JOIN executions ON executions.key = instances.key AND executions.execution = instances.current_execution
WHERE instances.name IS NOT NULL
  AND instances.instance >= ?4 AND instances.instance < coalesce(?5, x'')
  AND instances.ord < ?1
  AND (?2 IS NULL OR instances.current_status = ?2)
  AND (?3 IS NULL OR instances.name = ?3)
  AND (?6 IS NULL OR instances.parent = ?6)
  AND (NOT ?7 OR instances.parent IS NULL)
ORDER BY instances.ord DESC LIMIT ?8
