-- Removes the history of an execution.
DELETE FROM history WHERE key = ?1 AND execution = ?2
