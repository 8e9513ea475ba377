-- Removes exactly the leased messages (S3).
DELETE FROM messages WHERE key = ?1 AND state = 1 AND token = ?2
  AND seq NOT IN (SELECT row FROM torn_messages)
