-- Reads the status, the output and the failure of an execution.
SELECT status, output, failure FROM executions WHERE key = ?1 AND execution = ?2
