-- Reads how an instance stands, from its row and the row of its current execution.
SELECT instances.instance, instances.name, instances.version, instances.current_execution,
    instances.custom_status,
    instances.custom_status_version, instances.parent, instances.created_at, instances.updated_at,
        instances.change,
    executions.status, executions.output, executions.failure, NULL
FROM instances
LEFT JOIN executions ON executions.key = instances.key AND executions.execution = instances.current_execution
WHERE instances.instance = ?1 AND instances.name IS NOT NULL
