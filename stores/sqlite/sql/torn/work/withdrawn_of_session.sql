-- Remembers the leases of activities of a session that is closed, if they cannot be read (S12), for ?3 beyond
-- the longest lease. Their tokens are read by indexes alone, which are searched only for what is listed.
INSERT INTO ended_leases (token, row, kind, look_at)
SELECT token, seq, 2, ?2 + ?3 + (SELECT longest_lease FROM counter WHERE id = 1)
FROM torn_work CROSS JOIN work INDEXED BY work_token
WHERE torn_work.until IS NOT NULL AND torn_work.row IN (SELECT seq FROM work WHERE session = ?1)
    AND work.token IS NOT NULL AND work.seq = torn_work.row
ON CONFLICT DO NOTHING
