-- Lists the row ?7 of a queue as set aside, which cannot be read or removed (S15).
INSERT INTO set_aside (id, queue, instance, payload, reason, attempts, at, torn)
VALUES (?1, ?2, ?3, '', ?4, ?5, ?6, ?7)
