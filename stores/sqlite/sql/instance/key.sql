-- Finds the key of an instance id.
SELECT key FROM instances WHERE instance = ?1
