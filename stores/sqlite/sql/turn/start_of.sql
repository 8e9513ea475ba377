-- Reads the first message of an instance that starts an execution, if it waits or is delayed.
SELECT item FROM messages WHERE seq = (
    SELECT min(seq) FROM messages
    WHERE key = ?1 AND starts = 1 AND seq NOT IN (SELECT row FROM torn_messages)
)
