-- Finds the latest execution of an instance.
SELECT max(execution) FROM executions WHERE key = ?1
