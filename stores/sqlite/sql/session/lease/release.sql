-- Ends the lease of a session. The `owner` column keeps the last owner, unless the lease is that of a claim
-- that was closed (S13).
UPDATE sessions
SET held = 0, locked_until = min(locked_until, ?2), closed_epoch = NULL,
    owner = iif(closed_epoch IS NOT NULL AND uses = 0, NULL, owner),
    incarnation = iif(closed_epoch IS NOT NULL AND uses = 0, NULL, incarnation),
    epoch = iif(closed_epoch IS NOT NULL AND uses = 0, 0, epoch)
WHERE id = ?1
