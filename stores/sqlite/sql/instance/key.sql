-- Finds the key of an instance.
SELECT key FROM instances WHERE instance = ?1
