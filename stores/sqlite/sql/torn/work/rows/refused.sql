-- Lists activities of a route that were refused and are not known to be torn, by an index alone, in a bounded
-- batch.
SELECT seq FROM work WHERE refused = 1 AND route = ?1 AND seq NOT IN (SELECT row FROM torn_work) LIMIT ?2
