-- At the end of an execution: writes the keys that it set to the state that the next one starts from.
INSERT INTO kv (key, layer, name, value, updated)
SELECT key, 0, name, value, updated FROM kv WHERE key = ?1 AND layer = 1 AND value IS NOT NULL
ON CONFLICT (key, layer, name) DO UPDATE SET value = excluded.value, updated = excluded.updated
