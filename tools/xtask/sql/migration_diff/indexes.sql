-- Describes the indexes of a schema; those of constraints are described with their tables.
SELECT i.relname::text AS name, pg_get_indexdef(i.oid) AS text
FROM pg_index AS x
JOIN pg_class AS i ON i.oid = x.indexrelid
WHERE i.relnamespace = $1::text::regnamespace
  AND NOT EXISTS (SELECT 1 FROM pg_constraint AS c WHERE c.conindid = i.oid)
ORDER BY 1
