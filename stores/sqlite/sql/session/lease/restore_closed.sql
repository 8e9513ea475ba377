-- Gives a session back the closed claim that the claim of a dropped fetch had replaced, if its lease lasts
-- (S13, G41). Returns its owner and the end of its lease. No use of the claim is left, so `uses` is 0.
UPDATE sessions
SET held = 1, incarnation = replaced_incarnation, locked_until = replaced_until,
    closed_epoch = replaced_epoch, replaced_by = NULL
WHERE id = ?1 AND replaced_by = epoch AND replaced_until > ?2
RETURNING owner, locked_until
