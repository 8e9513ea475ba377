-- Lists rows that were set aside as unreadable, in the order of their ids after $1 (S15). Locks: none.
SELECT id, queue, instance_id, payload, reason, attempts, at_ms FROM {schema}.set_aside WHERE id > $1
    ORDER BY id LIMIT $2
