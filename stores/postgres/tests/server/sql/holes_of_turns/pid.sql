-- Tells who the server takes this connection for.
SELECT pg_backend_pid()::bigint
