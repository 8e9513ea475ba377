-- Tells whether any work is ready, for whatever worker. If not, it tells when to look again: at once if due
-- work is locked by another transaction (`again`), else at `next_ms`.
-- Locks: those of sweep_work.
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
        -- The sweep may have made rows runnable below the floors.
        v_floors := {schema}.read_floors(v_now);
    END IF;
    RETURN QUERY SELECT
        EXISTS (SELECT 1 FROM {schema}.find_free_work(1, NULL, v_floors.work, false,
            {schema}.open_routes(NULL, NULL, v_now)))
            OR EXISTS (SELECT 1 FROM {schema}.heads),
        v_again, {schema}.next_work_moment(v_now, v_floors.leased_work, v_floors.held_sessions), v_now;
END
$function$
