-- Puts an activity that was set aside back into its queue, visible at ?6, with the terms, the deliveries and
-- the tries that it had.
INSERT INTO work (key, execution, activity, state, tag, session, visible_at, since, item, traceparent, call,
    deliveries, tries, last_error, first_fetched)
VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
