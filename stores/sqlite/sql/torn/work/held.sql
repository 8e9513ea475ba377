-- Finds the activity that a token holds and that is listed, but not given up, by an index alone.
SELECT work.seq FROM work JOIN torn_work ON torn_work.row = work.seq
WHERE work.token = ?1 AND torn_work.until IS NOT NULL
