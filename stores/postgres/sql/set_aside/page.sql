-- Lists rows that were set aside, by rising id.
SELECT id, queue, instance_id, payload, reason, attempts, at_ms FROM {schema}.set_aside WHERE id > $1
    ORDER BY id LIMIT $2
