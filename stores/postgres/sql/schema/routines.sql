-- Lists the functions and procedures of the given names in a schema, one row per form (list of parameters),
-- with a mark that changes when the function is replaced. Locks: none.
SELECT p.proname::text AS name, pg_get_function_identity_arguments(p.oid) AS arguments,
       p.oid::bigint AS oid, p.xmin::text AS mark
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = $1 AND p.proname = ANY ($2)
