-- Describes each piece of work in one line of text, for debugging. Locks: none.
SELECT format('%s of %s #%s activity %s state %s visible at %s attempts %s deliveries %s tries %s tag %s '
    'session %s worker %s', id, instance_id, execution_id, activity_id, state, visible_ms, attempt_count,
    deliveries, tries, tag, session_id, worker_id) AS line
FROM {schema}.worker_queue ORDER BY id
