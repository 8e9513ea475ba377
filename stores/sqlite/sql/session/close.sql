-- Closes a session of an instance: its row keeps only the number, for work that refers to it (S13).
UPDATE sessions
SET is_row = 0, held = 0, owner = NULL, incarnation = NULL, locked_until = 0, last_activity = 0, epoch = 0,
    idle_timeout = NULL, serial = 0
WHERE id = ?1
