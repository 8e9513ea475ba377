-- Leases the activity of the session for good, and tells how many were found.
SELECT count(*) FROM {name}.fetch_work_items(1, '{""}', '{w}', 900000000000, 'node', NULL, 900000000000, true, p_now_ms => {now}) AS f
WHERE f.instance_id = 'i{run}'
