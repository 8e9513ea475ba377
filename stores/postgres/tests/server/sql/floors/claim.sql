-- Queues two activities of a session; another owner leases the first for good, and the session with it.
SELECT {name}.enqueue_work('x', 'first', 1, 1, '', '', 's{run}', NULL, {now});
SELECT {name}.enqueue_work('x', 'i{run}', 1, 1, '', '', 's{run}', NULL, {now});
SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 900000000000, 'other', NULL, 60000, true, p_now_ms => {now});
