-- Reads what earlier executions left.
SELECT key, value, updated_ms FROM {schema}.kv WHERE instance_id = $1 AND layer = 0 AND value IS NOT NULL
