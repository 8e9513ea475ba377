-- Leases an activity, if there is one, and says what that costs.
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 2000)
