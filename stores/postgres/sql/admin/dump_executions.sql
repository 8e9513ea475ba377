-- Describes each execution in one line of text, for debugging. Locks: none.
SELECT format('%s #%s run %s %s', instance_id, execution_id, run_id, status) AS line
FROM {schema}.executions ORDER BY instance_id, execution_id
