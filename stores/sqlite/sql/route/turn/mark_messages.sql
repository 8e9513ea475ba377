-- Marks the messages of a lease as refused, so that the delay of the refusal can be ended early.
UPDATE messages SET refused = 1 WHERE key = ?1 AND state = 1 AND token = ?2
    AND seq NOT IN (SELECT row FROM torn_messages)
