-- Lists rows that were set aside, by rising id (S15).
SELECT id, queue, instance, payload, reason, attempts, at FROM set_aside WHERE id > ?1 ORDER BY id LIMIT ?2
