-- Lists which of the given names exist in a schema as tables, views or sequences. Locks: none.
SELECT c.relname::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = ANY ($2) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') ORDER BY 1
