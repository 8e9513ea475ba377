-- Reads the keys and values that earlier executions left. Locks: none.
SELECT key, value, updated_ms FROM {schema}.kv WHERE instance_id = $1 AND layer = 0 AND value IS NOT NULL
