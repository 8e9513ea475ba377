-- Describes instances, for people who debug.
SELECT format('%s %s@%s execution %s %s', instance_id, orchestration_name, orchestration_version,
    current_execution_id, status) AS line
FROM {schema}.instances ORDER BY ord
