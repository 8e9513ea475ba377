-- Reads the row of an execution and counts its events.
SELECT execution, status, output, started_at, completed_at,
    (SELECT count(*) FROM history WHERE history.key = executions.key
        AND history.execution = executions.execution)
FROM executions
WHERE key = (SELECT key FROM instances WHERE instance = ?1) AND execution = ?2
