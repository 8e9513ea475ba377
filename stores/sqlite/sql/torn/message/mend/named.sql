-- Tells whether a message names a table that was left behind.
SELECT EXISTS (SELECT 1 FROM messages WHERE item LIKE ?1)
