-- Tells whether a start of an instance is held back because it cannot be read.
SELECT EXISTS (
    SELECT 1 FROM messages JOIN torn_messages ON torn_messages.row = messages.seq
    WHERE messages.key = ?1 AND messages.starts = 1 AND messages.state IN (0, 1)
        AND torn_messages.until IS NOT NULL
)
