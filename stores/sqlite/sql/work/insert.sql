-- Queues an activity, ready at once. ?9 are its terms.
INSERT INTO work (key, execution, activity, state, tag, session, visible_at, since, item, traceparent, call)
VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?6, ?7, ?8, ?9)
