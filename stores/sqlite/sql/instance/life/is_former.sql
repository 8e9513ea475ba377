-- Tells whether a message that carries the life ?2 of the instance ?1 was made for a former life of it: the
-- instance has another life, or none yet. A start (?3) is not if no such instance exists at all (no row, no
-- history, no start that is not consumed yet): a child goes on without its parent (F13).
SELECT iif(
    EXISTS (SELECT 1 FROM instances WHERE instance = ?1 AND name IS NOT NULL),
    NOT EXISTS (SELECT 1 FROM instances WHERE instance = ?1 AND name IS NOT NULL AND ord = ?2),
    NOT ?3
        OR EXISTS (SELECT 1 FROM history WHERE key = (SELECT key FROM instances WHERE instance = ?1))
        OR EXISTS (
            SELECT 1 FROM messages
            WHERE key = (SELECT key FROM instances WHERE instance = ?1) AND starts = 1
                AND seq NOT IN (SELECT row FROM torn_messages)
        )
)
