-- Describes each queued message in one line of text, for debugging. Locks: none.
SELECT format('%s to %s state %s visible at %s attempts %s', id, instance_id, state, visible_ms,
    attempt_count) AS line
FROM {schema}.orchestrator_queue ORDER BY id
