-- Reads ready starts that stand behind the bound of the batch (S2).
SELECT seq, item, attempts, traceparent, starts FROM messages
WHERE key = ?1 AND state = 1 AND starts = 1 AND seq > ?2
ORDER BY seq
