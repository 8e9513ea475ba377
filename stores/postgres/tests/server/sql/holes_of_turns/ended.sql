-- Makes instances that ended early.
INSERT INTO {name}.instances
    (instance_id, orchestration_name, orchestration_version, status, created_at, updated_at, ord, change)
SELECT 'i' || n, 'o', '1', 'Completed', to_timestamp(0), to_timestamp(0), n, n FROM generate_series(1, 3) AS n;
INSERT INTO {name}.executions (instance_id, execution_id, run_id, status, started_at, completed_at)
SELECT 'i' || n, 1, n, 'Completed', to_timestamp(0), to_timestamp(1) FROM generate_series(1, 3) AS n;
INSERT INTO {name}.instance_locks (instance_id) SELECT 'i' || n FROM generate_series(1, 3) AS n;
