-- Finds the oldest ready activity of a session and tag.
SELECT min(seq) FROM work WHERE session = ?1 AND state = 1 AND tag = ?2
