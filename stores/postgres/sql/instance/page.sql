-- Lists instances, newest first, before the position $1; conditions that are NULL do not filter. The
-- statement is planned with the actual conditions, because each has an index of its own. Locks: none.
SELECT i.instance_id, i.orchestration_name, i.orchestration_version, i.current_execution_id, i.custom_status,
    i.custom_status_version, i.parent_instance_id,
    round(extract(epoch FROM i.created_at) * 1000)::bigint AS created_ms,
    round(extract(epoch FROM i.updated_at) * 1000)::bigint AS updated_ms, i.change, i.ord, e.status, e.output,
    e.failure
FROM {schema}.instances AS i
LEFT JOIN {schema}.executions AS e ON e.instance_id = i.instance_id
    AND e.execution_id = i.current_execution_id
WHERE i.ord < $1
  AND ($2::text IS NULL OR i.status = $2)
  AND ($3::text IS NULL OR i.orchestration_name = $3)
  AND ($4::text IS NULL OR i.instance_id >= $4) AND ($5::text IS NULL OR i.instance_id < $5)
  AND ($6::text IS NULL OR i.parent_instance_id = $6)
  AND (NOT $7::boolean OR i.parent_instance_id IS NULL)
ORDER BY i.ord DESC LIMIT $8
