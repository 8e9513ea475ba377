-- Lists children that ended up to ?1, by the time of their end, behind one of them, in a bounded batch, and
-- whether the parent of each is gone.
SELECT ended_at, key, instance, NOT EXISTS (
    SELECT 1 FROM instances AS parents WHERE parents.instance = instances.parent AND parents.name IS NOT NULL
) FROM instances
WHERE ended_at IS NOT NULL AND parent IS NOT NULL AND name IS NOT NULL
  AND ended_at <= ?1 AND ended_at >= ?2 AND NOT (ended_at = ?2 AND key <= ?3)
ORDER BY ended_at, key LIMIT ?4
