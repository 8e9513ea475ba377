-- Marks the claim that a session has as released: its lease does not expire.
UPDATE sessions SET released_epoch = epoch WHERE id = ?1
