-- Adds a handler of a worker to those that a refusal and a fetch look for.
INSERT INTO worker_handlers (kind, name, worker, version) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING
