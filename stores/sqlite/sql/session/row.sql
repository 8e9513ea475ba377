-- Reads a session by its key, if it was claimed or opened.
SELECT id, instance, session_id, held, owner, incarnation, locked_until, last_activity, epoch, idle_timeout,
    serial, iif(uses = 0, closed_epoch, NULL), released_epoch IS epoch
FROM sessions WHERE instance = ?1 AND session_id = ?2 AND is_row = 1
