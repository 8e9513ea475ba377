-- Finds the next tag of a session's ready activities: one look at the index for each.
SELECT min(tag) FROM work WHERE session = ?1 AND state = 1 AND tag >= ?2
