-- Records a commit in the row of an instance: its time, its change and its current execution.
UPDATE instances
SET current_execution = max(current_execution, ?2), updated_at = ?3, change = ?4
WHERE key = ?1 AND name IS NOT NULL
