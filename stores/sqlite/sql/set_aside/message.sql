-- Sets a message aside with all that it had (S15).
INSERT INTO set_aside (id, queue, instance, payload, reason, attempts, at, traceparent, starts, due, life)
VALUES (?1, 0, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
