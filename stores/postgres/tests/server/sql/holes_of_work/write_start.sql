-- Queues the start of an instance that has no row.
INSERT INTO {name}.orchestrator_queue (instance_id, work_item, state, visible_ms, starts, created_at) VALUES ('i', 'x', 1, 0, true, now())
