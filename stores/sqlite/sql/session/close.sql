-- Closes a session of an instance. Its row stays with cleared columns, because work may refer to its number
-- (S13).
UPDATE sessions
SET is_row = 0, held = 0, owner = NULL, incarnation = NULL, locked_until = 0, last_activity = 0, epoch = 0,
    idle_timeout = NULL, serial = 0
WHERE id = ?1
