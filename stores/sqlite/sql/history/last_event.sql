-- Finds the last event of an execution.
SELECT max(event_id) FROM history WHERE key = ?1 AND execution = ?2
