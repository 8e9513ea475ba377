-- Opens a session of an instance; the options of a session that is open already stay as they are (S13).
UPDATE sessions
SET last_activity = iif(is_row = 1, last_activity, ?2),
    idle_timeout = iif(is_row = 1, idle_timeout, ?3),
    serial = iif(is_row = 1, serial, coalesce(?4, 0)),
    is_row = 1
WHERE id = ?1
