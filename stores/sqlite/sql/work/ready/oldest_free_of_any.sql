-- Finds the oldest ready activity without a session of any tag (S18).
SELECT min(seq) FROM work WHERE state = 1 AND session IS NULL AND seq NOT IN (SELECT row FROM torn_work)
