-- Tells whether any activity is ready, whoever may take it, and else when to look again: at once, because another transaction has
-- what is due, or at the next moment.
-- Locks: what the sweep of work locks.
CREATE OR REPLACE FUNCTION {schema}.has_work(p_now_ms BIGINT DEFAULT NULL)
RETURNS TABLE (found BOOLEAN, again BOOLEAN, next_ms BIGINT, now_ms BIGINT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_floors {schema}.floors := {schema}.read_floors(v_now);
    v_again BOOLEAN := {schema}.sweep_work(v_now, v_floors.due_work, v_floors.leased_work);
BEGIN
    IF pg_current_xact_id_if_assigned() IS NOT NULL THEN
        -- What the sweep has moved may be beneath the floors.
        v_floors := {schema}.read_floors(v_now);
    END IF;
    RETURN QUERY SELECT
        EXISTS (SELECT 1 FROM {schema}.find_free_work(1, NULL, v_floors.work))
            OR EXISTS (SELECT 1 FROM {schema}.heads),
        v_again, {schema}.next_work_moment(v_now, v_floors.leased_work, v_floors.held_sessions), v_now;
END
$function$
