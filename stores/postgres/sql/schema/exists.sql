-- Tells whether a schema exists and what the current role may do in it. Locks: none.
SELECT has_schema_privilege(n.oid, 'USAGE') AS may_use, has_schema_privilege(n.oid, 'CREATE') AS may_create
FROM pg_namespace n WHERE n.nspname = $1
