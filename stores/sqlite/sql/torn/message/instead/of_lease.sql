-- Gives up exactly the leased messages (S3) where they are, because they cannot be removed.
INSERT INTO torn_messages (row, key, attempts, until)
SELECT seq, key, 0, NULL FROM messages
WHERE key = ?1 AND state = 1 AND token = ?2
  AND seq NOT IN (SELECT row FROM torn_messages)
