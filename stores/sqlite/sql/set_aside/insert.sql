-- Sets a row aside (S15).
INSERT INTO set_aside (id, queue, instance, payload, reason, attempts, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
