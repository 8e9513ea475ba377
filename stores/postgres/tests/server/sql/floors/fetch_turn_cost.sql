-- Leases an instance, if there is one, and says what that costs.
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) SELECT * FROM {name}.fetch_turns(NULL, 2000, 1)
