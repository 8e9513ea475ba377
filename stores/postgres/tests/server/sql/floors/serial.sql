-- Queues two activities of a serial session, and leases the first.
SELECT {name}.open_session('i{run}', 's', NULL, true, {now});
SELECT {name}.enqueue_work('x', 'i{run}', 1, 1, '', 'i{run}', 's', NULL, {now});
SELECT {name}.enqueue_work('x', 'i{run}', 1, 2, '', 'i{run}', 's', NULL, {now});
SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 60000, 'node', NULL, 60000, true, p_now_ms => {now});
