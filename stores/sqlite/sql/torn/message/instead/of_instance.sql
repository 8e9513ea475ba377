-- Gives up the messages to an instance that is deleted where they are.
INSERT INTO torn_messages (row, key, attempts, until)
SELECT seq, key, 0, NULL FROM messages
WHERE key = ?1 AND state IN (0, 1)
  AND seq NOT IN (SELECT row FROM torn_messages)
