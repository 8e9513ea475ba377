-- Reads the events of an execution, or of the latest one.
SELECT event_data FROM {schema}.history
WHERE instance_id = $1
  AND execution_id = coalesce($2, (SELECT max(e.execution_id) FROM {schema}.executions AS e
      WHERE e.instance_id = $1), 1)
ORDER BY event_id
