-- Lists workers with listed handlers that have not reported since ?1, in a bounded batch.
SELECT id FROM workers WHERE is_listed = 1 AND last_seen <= ?1 ORDER BY last_seen LIMIT ?2
