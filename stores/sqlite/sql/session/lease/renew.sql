-- Extends the lease of a session by a renewal (S13).
UPDATE sessions SET locked_until = ?2 WHERE id = ?1
