-- Removes an activity.
DELETE FROM work WHERE seq = ?1
