-- Leases one activity, and says what that costs.
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF)
SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 30000, 'node', NULL, 30000, true)
