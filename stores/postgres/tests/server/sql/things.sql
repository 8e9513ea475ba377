-- Counts what is in a schema: tables and their kin, and functions.
SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = n.oid AND relkind IN ('r', 'S', 'v'))
     + (SELECT count(*) FROM pg_proc WHERE pronamespace = n.oid)
FROM (SELECT (SELECT oid FROM pg_namespace WHERE nspname = '{name}') AS oid) AS n
