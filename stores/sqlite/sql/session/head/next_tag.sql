-- Finds the next tag of a session's ready activities. One look at the index each.
SELECT min(tag) FROM work WHERE session = ?1 AND state = 1 AND tag >= ?2
