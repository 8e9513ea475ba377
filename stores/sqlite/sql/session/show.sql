-- Reads the row of a session by its number.
SELECT id, instance, session_id, held, owner, incarnation, locked_until, last_activity, epoch, idle_timeout,
    serial, iif(uses = 0, closed_epoch, NULL), released_epoch IS epoch
FROM sessions WHERE id = ?1
