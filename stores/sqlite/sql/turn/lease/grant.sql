-- Leases an instance (S1).
UPDATE instances SET turn = 2, head = NULL, token = ?2, locked_until = ?3 WHERE key = ?1
