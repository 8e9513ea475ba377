-- Reads one session that was claimed or opened, with the number of its queued work. Locks: none.
SELECT s.instance_id, s.session_id, s.worker_id, s.incarnation, s.locked_until, s.last_activity_at, s.epoch,
    s.idle_timeout,
    s.serial, (
        SELECT count(*) FROM {schema}.worker_queue AS w
        WHERE w.session_id = s.session_id AND w.session_scope = s.instance_id
    ) AS queued
FROM {schema}.sessions AS s
WHERE s.instance_id = $1 AND s.session_id = $2
