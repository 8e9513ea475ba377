-- Leases the activity for a moment that is over.
SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 1, p_now_ms => {now} - 10)
