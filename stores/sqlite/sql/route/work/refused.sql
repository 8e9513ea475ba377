-- Lists activities of a route that were refused, in a bounded batch.
SELECT seq, session, tag, state FROM work
WHERE refused = 1 AND route = ?1 AND seq NOT IN (SELECT row FROM torn_work) LIMIT ?2
