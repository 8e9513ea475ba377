-- Removes what was queued, as it is after it was done.
DELETE FROM {name}.orchestrator_queue;
DELETE FROM {name}.instance_locks WHERE instance_id = 'probe';
DELETE FROM {name}.worker_queue;
