-- Tells how an execution stands.
SELECT status, output, failure FROM executions WHERE key = ?1 AND execution = ?2
