-- Lists up to $3 sessions after the key ($1, $2), in the order of keys, with the number of their queued work.
-- Locks: none.
SELECT s.instance_id, s.session_id, s.worker_id, s.incarnation, s.locked_until, s.last_activity_at, s.epoch,
    s.idle_timeout,
    s.serial, queued.queued
FROM (
    SELECT * FROM {schema}.sessions AS s
    WHERE (s.instance_id, s.session_id) > ($1, $2)
    ORDER BY s.instance_id, s.session_id LIMIT $3
) AS s
CROSS JOIN LATERAL (
    SELECT count(*) AS queued FROM {schema}.worker_queue AS w
    WHERE w.session_id = s.session_id AND w.session_scope = s.instance_id
) AS queued
ORDER BY s.instance_id, s.session_id
