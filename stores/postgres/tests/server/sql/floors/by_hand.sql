-- Makes the instance ready in no way of ours.
UPDATE {name}.instance_locks AS l
SET lock_token = NULL, locked_until = NULL,
    head = (SELECT min(q.id) FROM {name}.orchestrator_queue AS q WHERE q.instance_id = l.instance_id)
WHERE l.instance_id = 'i{run}'
