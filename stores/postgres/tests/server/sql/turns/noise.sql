-- Puts in what must not matter to a fetch that can run what is pinned to nothing: 25,000 instances that are leased, as many that
-- are ready and pinned to a version, as many that wait for a time, and as many that have nothing to do, all with histories.
INSERT INTO {name}.pins VALUES (1);
INSERT INTO {name}.orchestrator_queue (instance_id, work_item, state, visible_ms, starts, created_at)
SELECT 'l' || n, 'x', 1, 0, true, now() FROM generate_series(1, 25000) AS n;
INSERT INTO {name}.instance_locks (instance_id, lock_token, locked_until, leased)
SELECT q.instance_id, 'token' || q.id, 9000000000000 + q.id, ARRAY[q.id] FROM {name}.orchestrator_queue AS q;
INSERT INTO {name}.orchestrator_queue (instance_id, work_item, state, visible_ms, starts, created_at)
SELECT 'p' || n, 'x', 1, 0, true, now() FROM generate_series(1, 25000) AS n;
INSERT INTO {name}.instance_locks (instance_id, head, since, pin)
SELECT q.instance_id, q.id, 1, 1 FROM {name}.orchestrator_queue AS q WHERE q.instance_id LIKE 'p%';
INSERT INTO {name}.instance_locks (instance_id) SELECT 'd' || n FROM generate_series(1, 25000) AS n;
INSERT INTO {name}.orchestrator_queue (instance_id, work_item, state, visible_ms, starts, created_at)
SELECT 'd' || n, 'x', 0, 9000000000000 + n, false, now() FROM generate_series(1, 25000) AS n;
INSERT INTO {name}.instance_locks (instance_id) SELECT 'i' || n FROM generate_series(1, 25000) AS n;
INSERT INTO {name}.instances
    (instance_id, orchestration_name, orchestration_version, created_at, updated_at, ord, change)
SELECT l.instance_id, 'o', '1', now(), now(), nextval('{name}.numbers'), nextval('{name}.numbers')
FROM {name}.instance_locks AS l WHERE l.instance_id NOT IN ('a', 'b', 'c');
INSERT INTO {name}.executions (instance_id, execution_id, run_id, started_at)
SELECT i.instance_id, 1, i.ord, now() FROM {name}.instances AS i;
INSERT INTO {name}.history (instance_id, execution_id, event_id, event_type, event_data, created_at)
SELECT i.instance_id, 1, 1, 'x', 'x', now() FROM {name}.instances AS i;
