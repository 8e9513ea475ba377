-- Reads the OrchestrationStarted event of an execution. Locks: none.
SELECT event_data FROM {schema}.history
WHERE instance_id = $1 AND execution_id = $2 AND event_type = 'OrchestrationStarted'
ORDER BY event_id LIMIT 1
