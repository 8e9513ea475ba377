-- Reads one session that was claimed or opened, with the number of its queued work. A session whose last
-- claim was closed has no owner, although the lease of that claim may last. Locks: none.
SELECT s.instance_id, s.session_id,
    CASE WHEN s.closed_epoch IS NULL THEN s.worker_id ELSE '' END AS worker_id, s.incarnation,
    CASE WHEN s.closed_epoch IS NULL THEN s.locked_until ELSE 0 END AS locked_until,
    s.last_activity_at, s.epoch, s.idle_timeout, s.serial, (
        SELECT count(*) FROM {schema}.worker_queue AS w
        WHERE w.session_id = s.session_id AND w.session_scope = s.instance_id
    ) AS queued
FROM {schema}.sessions AS s
WHERE s.instance_id = $1 AND s.session_id = $2
