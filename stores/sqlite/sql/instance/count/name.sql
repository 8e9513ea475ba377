-- Counts the instances of an orchestration, at most ?2.
SELECT count(*) FROM (
    SELECT 1 FROM instances INDEXED BY instances_name WHERE name IS NOT NULL AND name = ?1 LIMIT ?2
)
