-- Removes an execution.
DELETE FROM executions WHERE key = ?1 AND execution = ?2
