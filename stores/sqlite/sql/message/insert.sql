-- Queues a message, ready or delayed. ?8 is how an activity failed.
INSERT INTO messages (key, state, visible_at, starts, item, traceparent, due, life, failure)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?3, ?7, ?8)
