-- Tells whether an index has a message, whose row is not there.
SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_order WHERE seq = ?1)
