-- Counts messages and work that are not leased.
SELECT out_orchestrator_queue AS messages, out_worker_queue AS work FROM {schema}.get_queue_depths($1)
