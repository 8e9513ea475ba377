-- Lists delayed messages whose time has come, by an index alone, in a bounded batch.
SELECT seq FROM messages
WHERE state = 0 AND visible_at <= ?1 AND seq NOT IN (SELECT row FROM torn_messages)
ORDER BY visible_at LIMIT ?2
