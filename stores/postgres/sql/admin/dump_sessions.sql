-- Describes each session in one line of text, for debugging. Locks: none.
SELECT format('%s/%s held %s by %s until %s epoch %s', instance_id, session_id, held, worker_id, locked_until,
    epoch) AS line
FROM {schema}.sessions ORDER BY instance_id, session_id
