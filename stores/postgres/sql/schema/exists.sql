-- Says whether a schema is there, and what the role may do in it. Takes no lock.
SELECT has_schema_privilege(n.oid, 'USAGE') AS may_use, has_schema_privilege(n.oid, 'CREATE') AS may_create
FROM pg_namespace n WHERE n.nspname = $1
