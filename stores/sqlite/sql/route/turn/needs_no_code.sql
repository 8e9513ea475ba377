-- Marks a message that any worker can act on.
UPDATE messages SET needs_code = 0 WHERE seq = ?1
