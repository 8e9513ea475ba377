-- Shows a row that was set aside.
SELECT id, queue, instance_id, payload, reason, attempts, at_ms FROM {schema}.set_aside WHERE id = $1
