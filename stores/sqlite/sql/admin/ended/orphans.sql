-- Lists children whose parent is gone and that ended up to ?1, by the time of their end, behind one of them,
-- in a bounded batch.
SELECT ended_at, key, instance FROM instances
WHERE ended_at IS NOT NULL AND orphan = 1 AND name IS NOT NULL
  AND ended_at <= ?1 AND ended_at >= ?2 AND NOT (ended_at = ?2 AND key <= ?3)
ORDER BY ended_at, key LIMIT ?4
