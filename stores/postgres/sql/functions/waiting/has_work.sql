-- Tells whether any activity is ready, whoever may take it, and else when to look again: at once, because another transaction has
-- what is due, or at the next moment.
-- Locks: what the sweep of work locks.
CREATE OR REPLACE FUNCTION {schema}.has_work(p_now_ms BIGINT DEFAULT NULL)
RETURNS TABLE (found BOOLEAN, again BOOLEAN, next_ms BIGINT, now_ms BIGINT)
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
    v_again BOOLEAN := {schema}.sweep_work(v_now);
BEGIN
    RETURN QUERY SELECT
        EXISTS (SELECT 1 FROM {schema}.worker_queue AS w WHERE w.state = 1 AND w.session_id IS NULL ORDER BY w.id - 0)
            OR EXISTS (SELECT 1 FROM {schema}.heads),
        v_again, {schema}.next_work_moment(v_now), v_now;
END
$function$
