-- Lists delayed messages whose time has come (S9), oldest first, in a bounded batch.
SELECT seq, key, visible_at FROM messages
WHERE state = 0 AND visible_at <= ?1 AND seq NOT IN (SELECT row FROM torn_messages)
ORDER BY visible_at LIMIT ?2
