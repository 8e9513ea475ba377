-- Removes an ended lease whose message or activity is gone or cannot be read, or that was withdrawn long ago.
DELETE FROM ended_leases
WHERE token = ?1 AND row = ?2 AND CASE kind
    WHEN 0 THEN NOT EXISTS (
        SELECT 1 FROM messages WHERE seq = (SELECT ?2 WHERE ?2 NOT IN (SELECT row FROM torn_messages))
    )
    WHEN 1 THEN NOT EXISTS (
        SELECT 1 FROM work WHERE seq = (SELECT ?2 WHERE ?2 NOT IN (SELECT row FROM torn_work))
    )
    ELSE 1
END
