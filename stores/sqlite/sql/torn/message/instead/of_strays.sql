-- Gives up the visible messages to an instance that does not exist (S17) where they are.
INSERT INTO torn_messages (row, key, attempts, until)
SELECT seq, key, 0, NULL FROM messages
WHERE key = ?1 AND state = 1
  AND seq NOT IN (SELECT row FROM torn_messages)
