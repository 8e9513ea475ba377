-- Finds the activity that a token holds, and until when. One that was given up where it is, is held no more.
SELECT seq, locked_until FROM work
WHERE token = ?1 AND seq NOT IN (SELECT row FROM torn_work WHERE until IS NULL)
