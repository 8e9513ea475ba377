-- Reads ready starts that stand behind the bound of the batch, which ends at the message ?3, due at ?2 (S2).
SELECT seq, item, attempts, traceparent, starts, coalesce(due, visible_at), life, failure FROM messages
WHERE key = ?1 AND state = 1 AND starts = 1 AND seq NOT IN (SELECT row FROM torn_messages)
  AND coalesce(due, visible_at) >= ?2 AND NOT (coalesce(due, visible_at) = ?2 AND seq <= ?3)
ORDER BY coalesce(due, visible_at), seq LIMIT ?4
