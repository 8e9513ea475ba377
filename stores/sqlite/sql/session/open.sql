-- Opens a session of an instance; the options of a session that is open already stay as they are (S13). ?5 is
-- the epoch that a session gets whose lease lasts since it was closed: builds without `closed_epoch` take it
-- for that of a new claim.
UPDATE sessions
SET last_activity = iif(is_row = 1, last_activity, ?2),
    idle_timeout = iif(is_row = 1, idle_timeout, ?3),
    serial = iif(is_row = 1, serial, coalesce(?4, 0)),
    epoch = iif(is_row = 1, epoch, ?5),
    is_row = 1
WHERE id = ?1
