-- Sets or clears a key in the current execution.
INSERT INTO kv (key, layer, name, value, updated) VALUES (?1, 1, ?2, ?3, ?4)
ON CONFLICT (key, layer, name) DO UPDATE SET value = excluded.value, updated = excluded.updated
