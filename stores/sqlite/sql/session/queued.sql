-- Counts the queued and leased activities of a session.
SELECT count(*) FROM work WHERE session = ?1
