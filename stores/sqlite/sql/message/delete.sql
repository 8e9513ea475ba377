-- Removes one message.
DELETE FROM messages WHERE seq = ?1
