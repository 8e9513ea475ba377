-- Reads all keys: a change of the current execution counts before the state it started from.
SELECT name, value FROM kv AS seen
WHERE key = (SELECT key FROM instances WHERE instance = ?1)
  AND value IS NOT NULL
  AND NOT (layer = 0 AND EXISTS (
      SELECT 1 FROM kv AS changed WHERE changed.key = seen.key AND changed.layer = 1
          AND changed.name = seen.name
  ))
