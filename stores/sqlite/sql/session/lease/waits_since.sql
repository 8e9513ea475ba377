-- Tells whether an activity of a session and tag has been ready since before a time.
SELECT EXISTS (SELECT 1 FROM work WHERE session = ?1 AND state = 1 AND tag = ?2 AND since < ?3)
