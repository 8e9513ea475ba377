-- Leases an activity of a session, as the store asks for it.
SELECT item FROM {name}.fetch_work_items(1, '{""}', '{w}', 30000, 'node', NULL, 30000, true, p_unsynced => true)
