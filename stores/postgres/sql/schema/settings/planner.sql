-- Planner settings of functions, which stand for `{planner}` in their files. A plan is made once for each
-- connection and kept, usually while the tables are small and their statistics say little. So the plan must
-- not follow the statistics: every scan goes through an index, every join looks up one row after the other,
-- and one generic plan serves all parameters. Each call then costs what it touches, however large the tables
-- have become (S20). A call is short: compiling it does not pay.
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET enable_hashjoin TO off
SET enable_mergejoin TO off
SET jit TO off
SET plan_cache_mode TO force_generic_plan
