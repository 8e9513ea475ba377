-- Lists rows that were set aside.
SELECT id, queue, instance, payload, reason, attempts, at FROM set_aside WHERE id > ?1 ORDER BY id LIMIT ?2
