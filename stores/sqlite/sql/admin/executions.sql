-- Lists the executions of an instance.
SELECT execution FROM executions WHERE key = (SELECT key FROM instances WHERE instance = ?1) ORDER BY execution
