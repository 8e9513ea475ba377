-- Finds the oldest ready message of an instance.
SELECT min(seq) FROM messages WHERE key = ?1 AND state = 1
