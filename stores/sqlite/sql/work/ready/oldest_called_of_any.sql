-- Finds the oldest ready activity with terms and without a session, of any tag (S18).
SELECT min(seq) FROM work WHERE state = 1 AND session IS 0 AND seq NOT IN (SELECT row FROM torn_work)
