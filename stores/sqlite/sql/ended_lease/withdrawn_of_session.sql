-- Remembers the live leases of the activities of a session that is closed (S12), for ?3 beyond their end.
INSERT INTO ended_leases (token, row, kind, look_at)
SELECT token, seq, 2, min(locked_until, 9000000000000000000) + ?3 FROM work
WHERE session = ?1 AND state = 2 AND locked_until > ?2 AND seq NOT IN (SELECT row FROM torn_work)
ON CONFLICT DO NOTHING
