-- Removes the work of a session that is closed (S13).
DELETE FROM work WHERE session = ?1 AND seq NOT IN (SELECT row FROM torn_work)
