-- Claims a session for an owner, with a new epoch (S13). A closed claim whose lease lasts is kept aside: it
-- counts again if the fetch that claims the session is dropped (G41).
UPDATE sessions
SET is_row = 1, held = 1, owner = ?2, incarnation = ?3, locked_until = ?4, last_activity = ?5, epoch = ?6,
    uses = 1, closed_epoch = NULL,
    replaced_by = iif(held = 1 AND locked_until > ?5 AND uses = 0 AND closed_epoch IS NOT NULL, ?6, NULL),
    replaced_epoch = closed_epoch, replaced_incarnation = incarnation, replaced_until = locked_until
WHERE id = ?1
