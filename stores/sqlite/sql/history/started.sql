-- Reads the OrchestrationStarted event of an execution.
SELECT event FROM history
WHERE key = ?1 AND execution = ?2 AND kind = 'OrchestrationStarted'
ORDER BY event_id LIMIT 1
