-- Leases one activity.
SELECT token FROM {name}.fetch_work_items(1, '{""}', '{w}', 30000, 'node', NULL, 30000, true)
