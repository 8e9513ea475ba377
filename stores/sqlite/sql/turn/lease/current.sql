-- Reads the token and the end of an instance's lease, if it has not ended.
SELECT token, locked_until FROM instances WHERE key = ?1 AND turn = 2 AND locked_until > ?2
