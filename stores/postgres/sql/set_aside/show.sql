-- Reads one row that was set aside as unreadable (S15). Locks: none.
SELECT id, queue, instance_id, payload, reason, attempts, at_ms FROM {schema}.set_aside WHERE id = $1
