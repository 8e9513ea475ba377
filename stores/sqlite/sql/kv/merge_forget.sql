-- At the end of an execution: removes its changes, which the statements before this one have merged.
DELETE FROM kv WHERE key = ?1 AND layer = 1
