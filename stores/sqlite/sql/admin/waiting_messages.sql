-- Counts messages that no live lease holds, future ones included.
SELECT count(*) FROM messages
WHERE NOT EXISTS (
    SELECT 1 FROM instances
    WHERE instances.key = messages.key AND turn = 2 AND locked_until > ?1 AND instances.token = messages.token
)
