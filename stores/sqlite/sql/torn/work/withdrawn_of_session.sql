-- Remembers the leases of activities of a session that is closed, if they cannot be read (S12), for ?3 beyond
-- the longest lease. Their tokens are read by indexes alone.
INSERT INTO ended_leases (token, row, kind, look_at)
SELECT token, seq, 2, ?2 + ?3 + (SELECT longest_lease FROM counter WHERE id = 1)
FROM work INDEXED BY work_token
WHERE token IS NOT NULL AND seq IN (SELECT row FROM torn_work WHERE until IS NOT NULL)
    AND seq IN (SELECT seq FROM work WHERE session = ?1)
ON CONFLICT DO NOTHING
