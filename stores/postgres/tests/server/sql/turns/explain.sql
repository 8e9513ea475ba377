-- Runs a statement, and says what that costs.
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) {statement}
