-- Finds the oldest ready activity without a session for one tag (S18).
SELECT min(seq) FROM work WHERE state = 1 AND session IS NULL AND tag = ?1
    AND seq NOT IN (SELECT row FROM torn_work)
