-- Counts the blocks of the schema's tables and indexes that this transaction has read so far. The relations
-- are found through pg_depend, because on a server with many schemas a scan of pg_class would be slow. Locks:
-- none.
SELECT coalesce(sum(pg_stat_get_xact_blocks_fetched(r.oid)), 0)::bigint
FROM pg_depend AS d
CROSS JOIN LATERAL (
    SELECT d.objid AS oid
    UNION ALL
    SELECT i.indexrelid FROM pg_index AS i WHERE i.indrelid = d.objid
) AS r
WHERE d.refclassid = 'pg_namespace'::regclass
  AND d.refobjid = $1::text::regnamespace
  AND d.classid = 'pg_class'::regclass
