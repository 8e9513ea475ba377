-- Finds the activity that a token holds, and until when.
SELECT seq, locked_until FROM work WHERE token = ?1 AND seq NOT IN (SELECT row FROM torn_work)
