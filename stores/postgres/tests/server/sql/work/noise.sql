-- Puts in what must not matter to a worker: 100,000 activities pinned to sessions of others, as many idle sessions of its own, as
-- many activities of another tag, delayed and leased.
INSERT INTO {name}.lines SELECT '', 's' || n FROM generate_series(1, 1000) AS n;
INSERT INTO {name}.sessions (session_id, worker_id, held, locked_until, last_activity_at, epoch)
SELECT 's' || n, 'other' || n % 20, true, 9000000000000, 0, n FROM generate_series(1, 1000) AS n;
INSERT INTO {name}.worker_queue (work_item, state, visible_ms, created_at, instance_id, execution_id, activity_id, session_id, since)
SELECT 'x', 1, 0, now(), 'o' || n, 1, 1, 's' || n % 1000 + 1, 0 FROM generate_series(1, 100000) AS n;
INSERT INTO {name}.heads
SELECT w.session_scope, w.session_id, w.tag, min(w.id), ':' || min(s.worker_id), 0
FROM {name}.worker_queue AS w JOIN {name}.sessions AS s ON s.session_id = w.session_id
GROUP BY w.session_scope, w.session_id, w.tag;
INSERT INTO {name}.lines SELECT '', 'idle' || n FROM generate_series(1, 100000) AS n;
INSERT INTO {name}.sessions (session_id, worker_id, held, locked_until, last_activity_at, epoch)
SELECT 'idle' || n, 'node', true, 9000000000000, 0, n FROM generate_series(1, 100000) AS n;
INSERT INTO {name}.worker_queue (work_item, state, visible_ms, created_at, instance_id, execution_id, activity_id, tag, since)
SELECT 'x', 1, 0, now(), 'g' || n, 1, 1, ':gpu', 0 FROM generate_series(1, 100000) AS n;
INSERT INTO {name}.worker_queue (work_item, state, visible_ms, created_at, instance_id, execution_id, activity_id, since)
SELECT 'x', 0, 9000000000000 + n, now(), 'd' || n, 1, 1, 0 FROM generate_series(1, 100000) AS n;
INSERT INTO {name}.worker_queue
    (work_item, state, visible_ms, created_at, instance_id, execution_id, activity_id, since, lock_token, locked_until)
SELECT 'x', 2, 0, now(), 'l' || n, 1, 1, 0, 'token' || n, 9000000000000 + n FROM generate_series(1, 100000) AS n;
