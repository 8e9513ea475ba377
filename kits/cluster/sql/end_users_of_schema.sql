-- Ends the connections that still hold a lock in the schema of a test that has ended. A future that was
-- dropped in the middle of a transaction keeps its locks until its runtime runs again, which may never
-- happen.
SELECT pg_terminate_backend(locks.pid)
FROM pg_locks AS locks
JOIN pg_class AS relations ON relations.oid = locks.relation
JOIN pg_namespace AS namespaces ON namespaces.oid = relations.relnamespace
WHERE namespaces.nspname = '{name}'
  AND locks.pid <> pg_backend_pid()
  AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
