-- Finds the first activity of a session, in whatever state; one that could not be read is passed over.
SELECT seq, state, tag FROM work WHERE session = ?1 AND unreadable = 0 ORDER BY seq LIMIT 1
