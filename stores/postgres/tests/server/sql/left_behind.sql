-- Counts what is left of instances; shared sessions are nobody's.
SELECT 'instances', count(*) FROM {name}.instances
UNION ALL SELECT 'executions', count(*) FROM {name}.executions
UNION ALL SELECT 'history', count(*) FROM {name}.history
UNION ALL SELECT 'kv', count(*) FROM {name}.kv
UNION ALL SELECT 'orchestrator_queue', count(*) FROM {name}.orchestrator_queue
UNION ALL SELECT 'instance_locks', count(*) FROM {name}.instance_locks
UNION ALL SELECT 'worker_queue', count(*) FROM {name}.worker_queue
UNION ALL SELECT 'heads', count(*) FROM {name}.heads
UNION ALL SELECT 'watchers', count(*) FROM {name}.watchers
UNION ALL SELECT 'sessions', count(*) FROM {name}.sessions WHERE instance_id <> ''
UNION ALL SELECT 'lines', count(*) FROM {name}.lines WHERE instance_id <> ''
