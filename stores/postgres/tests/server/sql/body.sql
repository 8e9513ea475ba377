-- Says whether a function of others is as they made it.
SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = '{name}' AND p.proname = 'notify' AND p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'sql')
