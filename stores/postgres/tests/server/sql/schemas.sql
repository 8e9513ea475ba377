-- Counts the schemas of a name.
SELECT count(*) FROM pg_namespace WHERE nspname = '{name}'
