-- Counts the instances whose id is from ?1 on and below ?2, at most ?3; with NULL as ?2 there is
-- no upper end, because a blob sorts behind all texts.
SELECT count(*) FROM (
    SELECT 1 FROM instances INDEXED BY sqlite_autoindex_instances_1
    WHERE instance >= ?1 AND instance < coalesce(?2, x'') LIMIT ?3
)
