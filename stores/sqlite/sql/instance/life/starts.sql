-- Reads the starts of an instance that turns of parents have sent, with the lives beside them.
SELECT item, life FROM messages WHERE key = ?1 AND starts = 1 AND life IS NOT NULL
    AND seq NOT IN (SELECT row FROM torn_messages)
