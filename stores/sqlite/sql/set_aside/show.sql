-- Reads a row that was set aside, with all that it had.
SELECT queue, instance, payload, traceparent, starts, due, life, execution, activity, tag, session_scope,
    session_id, torn, failure, call, deliveries, tries, last_error, first_fetched
FROM set_aside WHERE id = ?1
