-- Reads the starts that a lease holds, with the lives beside them, in the order of the batch.
SELECT item, life FROM messages
WHERE key = ?1 AND state = 1 AND starts = 1 AND token = ?2
  AND seq NOT IN (SELECT row FROM torn_messages)
ORDER BY coalesce(due, visible_at), seq
