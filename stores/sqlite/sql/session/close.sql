-- Forgets a session; the number stays for work that names it.
UPDATE sessions
SET is_row = 0, held = 0, owner = NULL, incarnation = NULL, locked_until = 0, last_activity = 0, epoch = 0,
    idle_timeout = NULL, serial = 0
WHERE id = ?1
