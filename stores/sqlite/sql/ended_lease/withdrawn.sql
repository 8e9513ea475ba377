-- Remembers the lease of an activity that is withdrawn while the lease is live (S12), for ?3 beyond its end.
INSERT INTO ended_leases (token, row, kind, look_at)
SELECT token, seq, 2, min(locked_until, 9000000000000000000) + ?3 FROM work
WHERE seq = (SELECT ?1 WHERE ?1 NOT IN (SELECT row FROM torn_work))
    AND state = 2 AND locked_until > ?2
ON CONFLICT DO NOTHING
