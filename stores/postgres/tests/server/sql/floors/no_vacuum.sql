-- Keeps the server from removing what processed items leave.
ALTER TABLE {name}.orchestrator_queue SET (autovacuum_enabled = off);
ALTER TABLE {name}.instance_locks SET (autovacuum_enabled = off);
ALTER TABLE {name}.worker_queue SET (autovacuum_enabled = off);
ALTER TABLE {name}.floors SET (autovacuum_enabled = off);
ALTER TABLE {name}.beneath SET (autovacuum_enabled = off);
