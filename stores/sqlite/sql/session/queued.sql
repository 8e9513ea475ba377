-- Counts the queued and leased activities of a session.
SELECT count(*) FROM work WHERE session = ?1 AND seq NOT IN (SELECT row FROM torn_work)
