-- Drops visible messages that no instance is there for (S17).
DELETE FROM messages WHERE key = ?1 AND state = 1
