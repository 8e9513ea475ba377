-- Claims a session for an owner, with a new epoch (S13).
UPDATE sessions
SET is_row = 1, held = 1, owner = ?2, incarnation = ?3, locked_until = ?4, last_activity = ?5, epoch = ?6,
    uses = 1, closed_epoch = NULL
WHERE id = ?1
