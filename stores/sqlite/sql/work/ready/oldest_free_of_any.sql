-- Finds the oldest ready activity without a session, whatever its tag.
SELECT min(seq) FROM work WHERE state = 1 AND session IS NULL
