-- Lists the activities of a session that are not known to be torn, by an index alone.
SELECT seq FROM work WHERE session = ?1 AND seq NOT IN (SELECT row FROM torn_work)
