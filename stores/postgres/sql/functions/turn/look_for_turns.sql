-- Moves what became runnable by time alone, and tells whether there is an instance to lease now, and the next moment at which
-- there is one without anybody doing anything.
-- Locks: instance_locks, skipping what others have locked.
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
        -- What the sweep has moved may be beneath the floors.
        v_floors := {schema}.read_floors(v_now);
    END IF;
    RETURN QUERY SELECT
        {schema}.has_turn(v_now, NULL, NULL, v_floors.turns, v_floors.due_messages, v_floors.leased_turns),
        {schema}.next_turn_moment(v_now, v_floors.leased_turns), v_now;
END
$function$
