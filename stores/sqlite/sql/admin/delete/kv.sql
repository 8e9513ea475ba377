-- Removes the key-value state of an instance.
DELETE FROM kv WHERE key = ?1
