-- Queues an activity and leases it, for a minute.
SELECT {name}.enqueue_work('x', 'i{run}', 1, 1, '', '', NULL, NULL, {now});
SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 60000, p_now_ms => {now});
