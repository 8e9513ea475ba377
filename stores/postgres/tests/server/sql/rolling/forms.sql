-- Counts the forms of the function.
SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = '{name}' AND p.proname = 'doubled'
