-- The execution is over: its changes are merged.
DELETE FROM kv WHERE key = ?1 AND layer = 1
