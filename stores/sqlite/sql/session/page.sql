-- Lists sessions that were claimed or opened, in the order of keys, behind one of them.
SELECT id, instance, session_id, held, owner, incarnation, locked_until, last_activity, epoch, idle_timeout,
    serial, iif(uses = 0, closed_epoch, NULL), released_epoch IS epoch
FROM sessions
WHERE is_row = 1 AND (?1 IS NULL OR (instance, session_id) > (?1, ?2))
ORDER BY instance, session_id LIMIT ?3
