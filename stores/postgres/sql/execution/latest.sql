-- Finds the latest execution of an instance and tells how it stands; no row when there is none.
SELECT execution_id, status, output, failure FROM {schema}.executions
WHERE instance_id = $1
ORDER BY execution_id DESC LIMIT 1
