-- Clears the marks of the ready messages of an instance: what delays them from now on is no refusal.
UPDATE messages SET refused = 0 WHERE key = ?1 AND state = 1 AND refused = 1
    AND seq NOT IN (SELECT row FROM torn_messages)
