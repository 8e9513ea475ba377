-- Finds the next time at which a message becomes visible, the lease of an instance ends, or a message that
-- could not be read is read again: three index lookups.
SELECT min(at) FROM (
    SELECT min(visible_at) AS at FROM messages WHERE state = 0 AND visible_at > ?1
    UNION ALL
    SELECT min(locked_until) FROM instances WHERE turn = 2 AND locked_until > ?1
    UNION ALL
    SELECT min(until) FROM torn_messages WHERE until > ?1
)
