-- Counts the events of an execution and the bytes of their texts.
SELECT count(*), coalesce(sum(octet_length(event)), 0) FROM history WHERE key = ?1 AND execution = ?2
