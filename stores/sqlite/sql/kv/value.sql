-- Reads one key: what the current execution changed counts before what earlier ones left.
SELECT value FROM kv WHERE key = (SELECT key FROM instances WHERE instance = ?1) AND name = ?2 ORDER BY layer DESC LIMIT 1
