-- Leases what there is for an owner, and tells whether something was left to others.
SELECT kind, item, again FROM {name}.fetch_work_items(4, '{""}', '{w,w,w,w}', 30000, 'node', NULL, 30000, true)
