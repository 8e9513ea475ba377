-- Marks every key that the current execution has set as cleared.
UPDATE kv SET value = NULL, updated = 0 WHERE key = ?1 AND layer = 1
