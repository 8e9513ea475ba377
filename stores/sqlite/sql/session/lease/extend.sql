-- Extends the lease of a session by a fetch of its owner (S13).
UPDATE sessions SET locked_until = ?2, last_activity = ?3, uses = uses + 1 WHERE id = ?1
