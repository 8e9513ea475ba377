-- Marks the message of a timer that the code does not await any more: ?2 is when it is due, ?3 its text.
UPDATE messages SET dropped = 1
WHERE key = ?1 AND state IN (0, 1) AND coalesce(due, visible_at) = ?2 AND item = ?3
  AND seq NOT IN (SELECT row FROM torn_messages)
