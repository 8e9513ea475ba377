-- Leases the activity of the session for a moment that is over, and the session too.
SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 1, 'other', NULL, 1, true, p_now_ms => {now} - 10)
