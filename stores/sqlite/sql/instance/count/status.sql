-- Counts the instances with a status, at most ?2.
SELECT count(*) FROM (
    SELECT 1 FROM instances INDEXED BY instances_status
    WHERE name IS NOT NULL AND current_status = ?1 LIMIT ?2
)
