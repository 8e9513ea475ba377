-- Reads the events of an execution with ids above $3, in the order of their ids (S2, S10). Locks: none.
SELECT event_data FROM {schema}.history
WHERE instance_id = $1 AND execution_id = $2 AND event_id > $3
ORDER BY event_id
