-- Tells whether a start of an instance waits in a state.
SELECT EXISTS (SELECT 1 FROM messages WHERE key = ?1 AND starts = 1 AND state = ?2)
