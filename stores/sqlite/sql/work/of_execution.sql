-- Lists the activities of an execution by rising id, at most ?3.
SELECT work.activity, work.item, coalesce(routes.tag, work.tag), sessions.instance, sessions.session_id,
    work.attempts, work.state, work.visible_at, work.locked_until, work.since, work.worker, work.call,
    work.deliveries, work.tries, work.last_error, work.first_fetched
FROM work
LEFT JOIN sessions ON sessions.id = work.session
LEFT JOIN routes ON routes.id = work.route
WHERE work.key = ?1 AND work.execution = ?2 AND work.seq NOT IN (SELECT row FROM torn_work)
ORDER BY work.activity LIMIT ?3
