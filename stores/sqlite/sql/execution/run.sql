-- Reads the run id of an execution, which differs when a deleted instance is started again.
SELECT run FROM executions WHERE key = ?1 AND execution = ?2
