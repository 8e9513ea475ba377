-- Finds the run of an execution.
SELECT run FROM executions WHERE key = ?1 AND execution = ?2
