-- Lists delayed activities whose time has come (S9), in a bounded batch.
SELECT seq, session, tag FROM work
WHERE state = 0 AND visible_at <= ?1 AND seq NOT IN (SELECT row FROM torn_work)
ORDER BY visible_at LIMIT ?2
