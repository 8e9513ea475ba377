-- Reads the row of an instance with the status of its current execution. Locks: none.
SELECT i.instance_id, i.orchestration_name, i.orchestration_version, i.current_execution_id, i.custom_status,
    i.custom_status_version, i.parent_instance_id,
    round(extract(epoch FROM i.created_at) * 1000)::bigint AS created_ms,
    round(extract(epoch FROM i.updated_at) * 1000)::bigint AS updated_ms, i.change, i.ord, e.status, e.output,
    e.failure
FROM {schema}.instances AS i
LEFT JOIN {schema}.executions AS e ON e.instance_id = i.instance_id
    AND e.execution_id = i.current_execution_id
WHERE i.instance_id = $1
