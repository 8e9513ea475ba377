-- Lists what a schema holds of some names: functions and procedures, each form of them, with its parameters and a mark that
-- changes when it is made anew. Takes no lock.
SELECT p.proname::text AS name, pg_get_function_identity_arguments(p.oid) AS arguments,
       p.oid::bigint AS oid, p.xmin::text AS mark
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = $1 AND p.proname = ANY ($2)
