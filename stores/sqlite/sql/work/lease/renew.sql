-- Extends the lease of an activity (S4).
UPDATE work SET locked_until = ?2 WHERE seq = ?1
