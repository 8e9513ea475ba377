-- Tells whether a schema is there.
SELECT count(*) FROM pg_namespace WHERE nspname = '{name}'
