-- Reads the first message of an instance that starts an execution, if it waits or is delayed.
SELECT item FROM (
    SELECT seq, item FROM messages WHERE key = ?1 AND state = 1 AND starts = 1
    UNION ALL
    SELECT seq, item FROM messages WHERE key = ?1 AND state = 0 AND starts = 1
)
ORDER BY seq LIMIT 1
