-- Puts a message that was set aside back into its queue, visible at ?2, with the order, the life and the
-- trace context that it had, and how an activity failed.
INSERT INTO messages (key, state, visible_at, starts, item, traceparent, due, life, failure)
VALUES (?1, 1, ?2, ?3, ?4, ?5, coalesce(?6, ?2), ?7, ?8)
