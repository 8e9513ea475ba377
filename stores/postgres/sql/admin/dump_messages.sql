-- Describes messages, for people who debug.
SELECT format('%s to %s state %s visible at %s attempts %s token %s', id, instance_id, state, visible_ms, attempt_count, lock_token) AS line
FROM {schema}.orchestrator_queue ORDER BY id
