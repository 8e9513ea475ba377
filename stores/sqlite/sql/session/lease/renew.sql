-- Extends the lease of a session.
UPDATE sessions SET locked_until = ?2 WHERE id = ?1
