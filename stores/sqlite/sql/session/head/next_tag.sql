-- Finds the lowest tag from ?2 on that a ready activity of a session has: one index lookup. Called again and
-- again, it lists the tags of all ready activities.
SELECT min(tag) FROM work WHERE session = ?1 AND state = 1 AND tag >= ?2
    AND seq NOT IN (SELECT row FROM torn_work)
