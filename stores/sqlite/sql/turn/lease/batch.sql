-- Reads the ready messages of an instance in the order of arrival, up to a bound (S2).
SELECT seq, item, attempts, traceparent, starts FROM messages WHERE key = ?1 AND state = 1
    ORDER BY seq LIMIT ?2
