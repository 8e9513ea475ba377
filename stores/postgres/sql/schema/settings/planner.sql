-- Planner settings of functions, which stand for `{planner}` in their files. A plan is made once for each
-- connection and kept, usually while the tables are small and their statistics say little. So the plan must
-- not follow the statistics: every scan goes through an index, every join looks up one row after the other,
-- and one generic plan serves all parameters. Each call then costs what it touches, however large the tables
-- have become (S20). A call is short: compiling it does not pay. The last one decides where names are looked
-- for: not in the schemas of the session, in which other roles may have made something of the same name.
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET enable_hashjoin TO off
SET enable_mergejoin TO off
SET jit TO off
SET plan_cache_mode TO force_generic_plan
SET search_path TO pg_catalog, {schema}, pg_temp
