-- Lists the instances whose current execution has a status, newest first.
SELECT instances.instance FROM instances
JOIN executions ON executions.key = instances.key AND executions.execution = instances.current_execution
WHERE instances.name IS NOT NULL AND executions.status = ?1
ORDER BY instances.ord DESC
