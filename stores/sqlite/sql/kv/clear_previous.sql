-- Marks every key of the previous execution as cleared by the current one.
INSERT INTO kv (key, layer, name, value, updated) SELECT key, 1, name, NULL, 0 FROM kv WHERE key = ?1
    AND layer = 0
ON CONFLICT (key, layer, name) DO UPDATE SET value = NULL, updated = 0
