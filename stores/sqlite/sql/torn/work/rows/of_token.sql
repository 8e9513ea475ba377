-- Finds the activity that a token holds and that is not known to be torn, by an index alone.
SELECT seq FROM work WHERE token = ?1 AND seq NOT IN (SELECT row FROM torn_work)
