-- Removes workers that have not reported since ?1, in a bounded batch.
DELETE FROM workers WHERE id IN (SELECT id FROM workers WHERE last_seen <= ?1 ORDER BY last_seen LIMIT ?2)
