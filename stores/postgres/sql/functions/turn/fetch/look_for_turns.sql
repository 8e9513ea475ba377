-- Makes due messages ready and ends expired leases, then tells whether an instance is ready, and the next
-- moment at which one becomes ready by time alone.
-- Locks: `instance_locks`, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.look_for_turns(p_now_ms BIGINT)
    RETURNS TABLE (ready BOOLEAN, next_ms BIGINT, now BIGINT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_floors {schema}.floors := {schema}.read_floors(v_now);
BEGIN
    PERFORM {schema}.sweep_turns(v_now, v_floors.due_messages, v_floors.leased_turns);
    IF pg_current_xact_id_if_assigned() IS NOT NULL THEN
        -- The sweep may have made rows runnable below the floors.
        v_floors := {schema}.read_floors(v_now);
    END IF;
    RETURN QUERY SELECT
        {schema}.has_turn(v_now, NULL, NULL, v_floors.turns, v_floors.due_messages, v_floors.leased_turns),
        {schema}.next_turn_moment(v_now, v_floors.leased_turns), v_now;
END
$function$
