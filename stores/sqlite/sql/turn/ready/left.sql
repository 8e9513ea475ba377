-- Counts the ready messages of an instance, by an index alone.
SELECT count(*) FROM messages WHERE key = ?1 AND state = 1 AND seq NOT IN (SELECT row FROM torn_messages)
