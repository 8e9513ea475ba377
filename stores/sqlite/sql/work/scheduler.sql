-- Reads the name and version of the orchestration that scheduled an activity.
SELECT name, version FROM instances WHERE key = ?1 AND name IS NOT NULL
