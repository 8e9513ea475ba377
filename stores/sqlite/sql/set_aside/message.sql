-- Sets the message ?11 aside with all that it had (S15).
INSERT INTO set_aside (id, queue, instance, payload, reason, attempts, at, traceparent, starts, due, life,
    failure)
VALUES (?1, 0, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, (SELECT failure FROM messages WHERE seq = ?11))
