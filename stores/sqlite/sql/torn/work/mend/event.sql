-- Reads the event that scheduled an activity.
SELECT event FROM history WHERE key = ?1 AND execution = ?2 AND event_id = ?3
