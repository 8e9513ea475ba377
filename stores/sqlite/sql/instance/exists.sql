-- Tells whether an instance exists: it has a row, any history, or a start that is not consumed yet (S17).
-- Starts with a life are left to `life/starts`: they may be of a former one.
SELECT EXISTS (SELECT 1 FROM instances WHERE key = ?1 AND name IS NOT NULL)
    OR EXISTS (SELECT 1 FROM history WHERE key = ?1)
    OR EXISTS (
        SELECT 1 FROM messages
        WHERE key = ?1 AND starts = 1 AND life IS NULL AND seq NOT IN (SELECT row FROM torn_messages)
    )
