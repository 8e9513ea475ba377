-- Tells whether an instance has a visible message that any worker can act on.
SELECT EXISTS (
    SELECT 1 FROM messages
    WHERE key = ?1 AND state = 1 AND needs_code = 0 AND seq NOT IN (SELECT row FROM torn_messages)
)
