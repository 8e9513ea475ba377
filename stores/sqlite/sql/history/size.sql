-- Measures the history of an execution.
SELECT count(*), coalesce(sum(octet_length(event)), 0) FROM history WHERE key = ?1 AND execution = ?2
