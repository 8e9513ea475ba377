-- Queues a message, ready or delayed.
INSERT INTO messages (key, state, visible_at, starts, item, traceparent, due, life)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?3, ?7)
