-- Counts the queues that the transaction has read from end to end.
SELECT count(*) FROM pg_stat_xact_user_tables
WHERE schemaname = '{name}' AND seq_scan > 0 AND relname IN (
    'orchestrator_queue', 'instance_locks', 'worker_queue', 'instances', 'executions', 'history', 'sessions', 'lines', 'heads')
