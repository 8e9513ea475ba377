-- Reads what earlier executions left.
SELECT name, value, updated FROM kv WHERE key = ?1 AND layer = 0
