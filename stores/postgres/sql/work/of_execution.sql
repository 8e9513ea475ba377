-- Lists up to $3 pieces of work of an execution in the order of their activity ids, with the time of the
-- database that their states are compared with. Locks: none.
SELECT w.activity_id, w.work_item, {schema}.plain_tag(w.tag) AS tag, w.session_scope, w.session_id,
    w.attempt_count, w.state,
    w.visible_ms, w.locked_until,
    w.since, w.worker_id, w.deliveries, w.call, w.tries, w.last_error, w.first_fetched, now_ms.now_ms
FROM (SELECT {schema}.now_ms($4) AS now_ms) AS now_ms
CROSS JOIN LATERAL (
    SELECT * FROM {schema}.worker_queue AS w
    WHERE w.instance_id = $1 AND w.execution_id = $2
    ORDER BY w.activity_id LIMIT $3
) AS w
ORDER BY w.activity_id, w.id
