-- Counts the instances of a parent, at most ?2.
SELECT count(*) FROM (
    SELECT 1 FROM instances INDEXED BY instances_parent WHERE name IS NOT NULL AND parent = ?1 LIMIT ?2
)
