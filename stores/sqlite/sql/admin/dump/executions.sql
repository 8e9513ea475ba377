-- Describes every execution in one line, for debugging.
SELECT printf('%s #%d run %d %s', instances.instance, executions.execution, executions.run, executions.status)
FROM executions JOIN instances ON instances.key = executions.key ORDER BY executions.key, executions.execution
