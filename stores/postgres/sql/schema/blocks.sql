-- Counts the blocks of the schema that this transaction has looked at so far.
SELECT coalesce(sum(pg_stat_get_xact_blocks_fetched(c.oid)), 0)::bigint
FROM pg_class c
WHERE c.relnamespace = $1::text::regnamespace
