-- Leases an activity without a session, as the store asks for it.
SELECT item FROM {name}.fetch_work_items(1, '{""}', '{w}', 30000, p_unsynced => true)
