-- Counts how often queues were read from end to end on this connection, as far as the server has not added that up.
SELECT coalesce(sum(seq_scan), 0)::bigint FROM pg_stat_xact_user_tables
WHERE schemaname = '{name}' AND relname IN (
    'orchestrator_queue', 'instance_locks', 'worker_queue', 'instances', 'executions', 'history', 'sessions', 'lines', 'heads')
