-- Reads the queued messages of timers that the code of an instance does not await any more, up to a bound.
SELECT item FROM messages WHERE key = ?1 AND state IN (0, 1) AND dropped = 1 LIMIT ?2
