-- Reads the state at the end of the previous execution, which a replay starts from.
SELECT name, value, updated FROM kv WHERE key = ?1 AND layer = 0
