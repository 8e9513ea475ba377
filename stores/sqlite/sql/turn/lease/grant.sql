-- Leases an instance (S1). ?4 is the token with the places of the messages that the lease holds.
UPDATE instances SET turn = 2, head = NULL, token = ?2, locked_until = ?3, batch = ?4 WHERE key = ?1
