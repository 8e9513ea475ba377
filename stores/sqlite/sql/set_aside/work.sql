-- Sets the activity ?7 aside with all that it had (S15, S22).
INSERT INTO set_aside (id, queue, instance, payload, reason, attempts, at, traceparent, execution, activity,
    tag, session_scope, session_id, call, deliveries, tries, last_error, first_fetched)
SELECT ?1, 1, ?2, ?3, ?4, ?5, ?6, ?8, work.execution, work.activity, coalesce(routes.tag, work.tag),
    sessions.instance, sessions.session_id, work.call, work.deliveries, work.tries, work.last_error,
    work.first_fetched
FROM work
LEFT JOIN sessions ON sessions.id = work.session
LEFT JOIN routes ON routes.id = work.route
WHERE work.seq = ?7
