-- Lists up to $2 workers after the id $1 in the order of their ids, with the time of the database that their
-- last reports are compared with. Locks: none.
SELECT w.worker_id, w.report, w.is_stopped, w.since_ms, w.last_seen_ms, {schema}.now_ms($3) AS now_ms
FROM {schema}.workers AS w
WHERE w.worker_id > $1
ORDER BY w.worker_id LIMIT $2
