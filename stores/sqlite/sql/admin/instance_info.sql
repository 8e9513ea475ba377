-- Reads the row of an instance and of its current execution.
SELECT instances.instance, instances.name, instances.version, instances.current_execution,
    coalesce(executions.status, 'Running'), executions.output, instances.created_at, instances.updated_at,
        instances.parent
FROM instances
LEFT JOIN executions ON executions.key = instances.key AND executions.execution = instances.current_execution
WHERE instances.instance = ?1 AND instances.name IS NOT NULL
