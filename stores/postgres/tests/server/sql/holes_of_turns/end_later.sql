-- Runs one of them once more, which ends late.
INSERT INTO {name}.executions (instance_id, execution_id, run_id, status, started_at, completed_at)
VALUES ('i2', 2, 4, 'Completed', to_timestamp(1000), to_timestamp(1000));
UPDATE {name}.instances SET current_execution_id = 2 WHERE instance_id = 'i2';
COMMIT
