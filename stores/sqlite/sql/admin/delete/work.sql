-- Finds the activities of an instance.
SELECT seq FROM work WHERE key = ?1
