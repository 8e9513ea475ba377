-- Reads the events of an execution after one of them.
SELECT event_data FROM {schema}.history
WHERE instance_id = $1 AND execution_id = $2 AND event_id > $3
ORDER BY event_id
