-- Remembers the lease of an activity that has expired: its holder may excuse the delivery (S5).
INSERT INTO ended_leases (token, row, kind, look_at)
SELECT token, seq, 1, ?2 FROM work WHERE seq = ?1 AND token IS NOT NULL
ON CONFLICT DO NOTHING
