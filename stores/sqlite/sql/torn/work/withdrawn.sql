-- Remembers the lease of an activity that is withdrawn and cannot be read (S12), for ?3 beyond the longest
-- lease. Its token is read by an index alone.
INSERT INTO ended_leases (token, row, kind, look_at)
SELECT token, seq, 2, ?2 + ?3 + (SELECT longest_lease FROM counter WHERE id = 1)
FROM work INDEXED BY work_token
WHERE EXISTS (SELECT 1 FROM torn_work WHERE row = ?1 AND until IS NOT NULL)
    AND token IS NOT NULL AND seq = ?1
ON CONFLICT DO NOTHING
