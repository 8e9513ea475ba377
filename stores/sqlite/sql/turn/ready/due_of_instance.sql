-- Lists the delayed messages of an instance whose time has come (S9), in the order in which they first became
-- due, in a bounded batch.
SELECT seq FROM messages
WHERE key = ?1 AND state = 0 AND coalesce(due, visible_at) <= ?2 AND visible_at <= ?2
  AND seq NOT IN (SELECT row FROM torn_messages)
ORDER BY coalesce(due, visible_at), seq LIMIT ?3
