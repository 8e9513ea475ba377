-- Reads the events of execution $2, or of the latest execution if $2 is NULL, in the order of their ids
-- (S10). Locks: none.
SELECT event_data FROM {schema}.history
WHERE instance_id = $1
  AND execution_id = coalesce($2, (SELECT max(e.execution_id) FROM {schema}.executions AS e
      WHERE e.instance_id = $1), 1)
ORDER BY event_id
