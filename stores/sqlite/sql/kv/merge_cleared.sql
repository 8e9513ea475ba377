-- At the end of an execution: removes the keys that it cleared from the state that the next one starts from.
DELETE FROM kv
WHERE key = ?1 AND layer = 0
  AND name IN (SELECT changed.name FROM kv AS changed WHERE changed.key = ?1 AND changed.layer = 1
      AND changed.value IS NULL)
