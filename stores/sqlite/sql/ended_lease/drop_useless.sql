-- Removes an ended lease whose message or activity is gone, or that was withdrawn long ago.
DELETE FROM ended_leases
WHERE token = ?1 AND row = ?2 AND CASE kind
    WHEN 0 THEN NOT EXISTS (SELECT 1 FROM messages WHERE messages.seq = ?2)
    WHEN 1 THEN NOT EXISTS (SELECT 1 FROM work WHERE work.seq = ?2)
    ELSE 1
END
