-- Ends what an execution watches (S13).
-- Locks: none but the rows that it removes.
CREATE OR REPLACE FUNCTION {schema}.unwatch_sessions(p_instance TEXT, p_execution BIGINT) RETURNS VOID
LANGUAGE plpgsql
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET enable_hashjoin TO off
SET enable_mergejoin TO off
SET plan_cache_mode TO force_generic_plan
SET jit TO off
AS $function$
#variable_conflict use_column
BEGIN
    DELETE FROM {schema}.watchers AS w WHERE w.instance_id = p_instance AND w.execution_id = p_execution;
END
$function$
