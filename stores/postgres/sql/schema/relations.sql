-- Lists what a schema holds of some names: tables, views, sequences. Takes no lock.
SELECT c.relname::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = ANY ($2) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') ORDER BY 1
