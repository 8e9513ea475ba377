-- Queues an activity of a session and leases it, for a minute.
SELECT {name}.enqueue_work('x', 'i{run}', 1, 1, '', '', 's{run}', NULL, {now});
SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 60000, 'node', NULL, 60000, true, p_now_ms => {now});
