-- Moves what became runnable by time alone, and tells whether there is an instance to lease now, and the next moment at which
-- there is one without anybody doing anything.
-- Locks: instance_locks, skipping what others have locked.
CREATE OR REPLACE FUNCTION {schema}.look_for_turns(p_now_ms BIGINT) RETURNS TABLE (ready BOOLEAN, next_ms BIGINT, now BIGINT)
LANGUAGE plpgsql
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET enable_hashjoin TO off
SET enable_mergejoin TO off
SET jit TO off
SET plan_cache_mode TO force_generic_plan
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
BEGIN
    PERFORM {schema}.sweep_turns(v_now);
    RETURN QUERY SELECT {schema}.has_turn(v_now), {schema}.next_turn_moment(v_now), v_now;
END
$function$
