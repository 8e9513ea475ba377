-- Says where the function is: its number in the catalog.
SELECT p.oid::bigint FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = '{name}' AND p.proname = 'doubled'
