-- Reads the ready messages of an instance in the order in which they first became due, then of arrival, up to
-- a bound (S2).
SELECT seq, item, attempts, traceparent, starts, coalesce(due, visible_at), life, failure FROM messages
WHERE key = ?1 AND state = 1 AND seq NOT IN (SELECT row FROM torn_messages)
ORDER BY coalesce(due, visible_at), seq LIMIT ?2
