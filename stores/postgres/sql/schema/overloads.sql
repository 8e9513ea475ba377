-- Lists the functions of a name in a schema, as DROP FUNCTION wants them.
SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = $1::text::regnamespace AND p.proname = $2
