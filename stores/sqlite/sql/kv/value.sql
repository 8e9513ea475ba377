-- Reads one key: a change of the current execution counts before the state it started from.
SELECT value FROM kv WHERE key = (SELECT key FROM instances WHERE instance = ?1) AND name = ?2
    ORDER BY layer DESC LIMIT 1
