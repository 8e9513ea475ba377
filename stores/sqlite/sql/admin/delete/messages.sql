-- Removes the messages to an instance.
DELETE FROM messages WHERE seq IN (
    SELECT seq FROM messages WHERE key = ?1 AND state = 0 UNION ALL SELECT seq FROM messages
        WHERE key = ?1 AND state = 1
) AND seq NOT IN (SELECT row FROM torn_messages)
