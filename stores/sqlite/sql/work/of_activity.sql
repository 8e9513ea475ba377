-- Finds the work of one scheduled activity.
SELECT seq FROM work WHERE key = ?1 AND execution = ?2 AND activity = ?3
