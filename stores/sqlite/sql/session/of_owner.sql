-- Lists the sessions that an owner holds, in the order of keys.
SELECT id, instance, session_id, held, owner, incarnation, locked_until, last_activity, epoch, idle_timeout,
    serial, iif(uses = 0, closed_epoch, NULL), released_epoch IS epoch
FROM sessions WHERE held = 1 AND owner = ?1 ORDER BY instance, session_id
