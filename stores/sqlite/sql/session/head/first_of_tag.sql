-- Finds the oldest ready activity of a session for a tag.
SELECT min(seq) FROM work WHERE session = ?1 AND state = 1 AND tag = ?2
    AND seq NOT IN (SELECT row FROM torn_work)
