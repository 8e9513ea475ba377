-- Reads the columns of a message that stand in front of its text.
SELECT key, state, attempts, token FROM messages WHERE seq = ?1
