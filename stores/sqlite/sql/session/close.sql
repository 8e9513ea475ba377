-- Closes a session of an instance. Its row stays with cleared columns, because work may refer to its number
-- (S13). A lease that lasts stays too: if the session is opened again, other processes wait until its former
-- owner has detached it.
UPDATE sessions
SET is_row = 0, last_activity = 0, epoch = 0, idle_timeout = NULL, serial = 0, uses = 0,
    held = iif(held = 1 AND locked_until > ?2, 1, 0),
    owner = iif(held = 1 AND locked_until > ?2, owner, NULL),
    incarnation = iif(held = 1 AND locked_until > ?2, incarnation, NULL),
    locked_until = iif(held = 1 AND locked_until > ?2, locked_until, 0),
    closed_epoch = iif(held = 1 AND locked_until > ?2,
        iif(uses = 0, coalesce(closed_epoch, epoch), epoch), NULL)
WHERE id = ?1
