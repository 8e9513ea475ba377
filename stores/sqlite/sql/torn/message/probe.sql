-- Reads all of a message: the last column stands behind the text.
SELECT item, needs_code, key, failure FROM messages WHERE seq = ?1
