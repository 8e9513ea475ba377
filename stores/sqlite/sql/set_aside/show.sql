-- Reads a row that was set aside.
SELECT id, queue, instance, payload, reason, attempts, at FROM set_aside WHERE id = ?1
