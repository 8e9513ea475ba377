-- Tells whether an instance has a start in the state ?2 (0 delayed, 1 ready).
SELECT EXISTS (
    SELECT 1 FROM messages
    WHERE key = ?1 AND starts = 1 AND state = ?2 AND seq NOT IN (SELECT row FROM torn_messages)
)
