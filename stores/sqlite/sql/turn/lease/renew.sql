-- Extends the lease of an instance (S4).
UPDATE instances SET locked_until = ?2 WHERE key = ?1
