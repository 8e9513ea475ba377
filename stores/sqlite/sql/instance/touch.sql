-- Notes a commit in the row of an instance.
UPDATE instances
SET current_execution = max(current_execution, ?2), updated_at = ?3, change = ?4
WHERE key = ?1 AND name IS NOT NULL
