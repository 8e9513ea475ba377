-- Describes each instance in one line of text, for debugging. Locks: none.
SELECT format('%s %s@%s execution %s %s', instance_id, orchestration_name, orchestration_version,
    current_execution_id, status) AS line
FROM {schema}.instances ORDER BY ord
