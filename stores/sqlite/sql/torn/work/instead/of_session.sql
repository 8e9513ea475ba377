-- Gives up the work of a session that is closed (S13) where it is.
INSERT INTO torn_work (row, key, attempts, until)
SELECT seq, key, 0, NULL FROM work
WHERE session = ?1
  AND seq NOT IN (SELECT row FROM torn_work)
