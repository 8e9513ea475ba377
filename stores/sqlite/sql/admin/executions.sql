-- Lists the numbers of an instance's executions, ascending.
SELECT execution FROM executions WHERE key = (SELECT key FROM instances WHERE instance = ?1)
    ORDER BY execution
