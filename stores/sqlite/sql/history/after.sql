-- Reads the events of an execution after one of them.
SELECT event FROM history WHERE key = ?1 AND execution = ?2 AND event_id > ?3 ORDER BY event_id
