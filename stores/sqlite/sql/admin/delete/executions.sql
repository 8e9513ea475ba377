-- Removes the executions of an instance.
DELETE FROM executions WHERE key = ?1
