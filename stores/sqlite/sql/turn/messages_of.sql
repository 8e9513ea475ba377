-- Counts the messages of an instance: those that the lease ?3 holds, those that are visible, and those that
-- are not visible yet, without the timers that the code does not await any more.
SELECT count(*) FILTER (WHERE held),
    count(*) FILTER (WHERE NOT held AND visible_at <= ?2),
    min(visible_at) FILTER (WHERE NOT held AND visible_at <= ?2),
    count(*) FILTER (WHERE NOT held AND visible_at > ?2 AND dropped = 0)
FROM (
    SELECT visible_at, dropped, ?3 IS NOT NULL AND token IS ?3 AS held FROM messages
    WHERE key = ?1 AND state = 1 AND seq NOT IN (SELECT row FROM torn_messages)
    UNION ALL
    SELECT visible_at, dropped, 0 FROM messages
    WHERE key = ?1 AND state = 0 AND seq NOT IN (SELECT row FROM torn_messages)
)
