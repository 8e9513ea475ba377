-- Reads the token of an instance's lease, and the messages that the lease holds.
SELECT token, batch FROM instances WHERE key = ?1 AND turn = 2 AND token IS NOT NULL
