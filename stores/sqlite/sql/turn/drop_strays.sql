-- Removes the visible messages to an instance that does not exist (S17).
DELETE FROM messages WHERE key = ?1 AND state = 1 AND seq NOT IN (SELECT row FROM torn_messages)
