-- Reads the queued messages of timers of the execution ?3 that the code of an instance does not await any
-- more, up to a bound.
SELECT item FROM messages
WHERE key = ?1 AND state IN (0, 1) AND dropped = 1 AND seq NOT IN (SELECT row FROM torn_messages)
  AND iif(json_valid(item), json_extract(item, '$.TimerFired.execution_id') = ?3, 0)
LIMIT ?2
