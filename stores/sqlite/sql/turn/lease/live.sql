-- Shows the lease of an instance, if it is live.
SELECT token, locked_until FROM instances WHERE key = ?1 AND turn = 2 AND locked_until > ?2
