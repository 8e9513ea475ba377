-- Returns the keys at which the index scans of a fetch start: each floor, or the lowest key in `beneath` of
-- its kind if that is lower (decision 0007). First it tends the floors if that is due: when 2,048 ids were
-- drawn since the last raise, when there are keys in `beneath` (at most once a second), and once a minute.
-- The last three parameters are the lease durations that the caller uses, for instances, work and sessions.
-- Locks: none, except for those of tend_floors.
CREATE OR REPLACE FUNCTION {schema}.read_floors(
    p_now BIGINT, p_turn_ms BIGINT DEFAULT NULL, p_work_ms BIGINT DEFAULT NULL,
    p_session_ms BIGINT DEFAULT NULL
) RETURNS {schema}.floors
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    -- The ids drawn between two raises. Their dead entries fill a few index pages.
    v_step CONSTANT BIGINT := 2048;
    -- The shortest time between two raises that are due only because of keys in `beneath`.
    v_pause_ms CONSTANT BIGINT := 1000;
    v_floors {schema}.floors;
    v_is_due BOOLEAN;
    v_is_any BOOLEAN;
BEGIN
    FOR v_look IN 1..2 LOOP
        SELECT f.turns, f.work, f.heads, f.due_messages, f.leased_turns, f.due_work, f.leased_work,
            f.held_sessions, named.is_any,
            {schema}.is_healing_due(f.healed_ms, p_now) OR CASE
                WHEN f.cycle IS NULL THEN {schema}.ids_drawn() - f.drawn >= v_step
                    OR (named.is_any AND p_now - f.at_ms >= v_pause_ms)
                WHEN f.horizon IS NULL THEN pg_current_xact_id_if_assigned() IS NULL
                ELSE {schema}.is_past(f.horizon)
            END
        INTO v_floors.turns, v_floors.work, v_floors.heads, v_floors.due_messages, v_floors.leased_turns,
            v_floors.due_work,
            v_floors.leased_work, v_floors.held_sessions, v_is_any, v_is_due
        FROM {schema}.floors AS f, (SELECT EXISTS (SELECT 1 FROM {schema}.beneath) AS is_any) AS named;
        EXIT WHEN v_is_due IS NOT TRUE OR v_look = 2;
        PERFORM {schema}.tend_floors(p_now, p_turn_ms, p_work_ms, p_session_ms);
    END LOOP;
    IF v_is_any THEN
        -- Read both tables in one statement: a raise deletes keys from `beneath` and lowers the floors in
        -- their place.
        SELECT least(f.turns, (SELECT min(b.key) FROM {schema}.beneath AS b WHERE b.kind = 'turns')),
            least(f.work, (SELECT min(b.key) FROM {schema}.beneath AS b WHERE b.kind = 'work')),
            least(f.heads, (SELECT min(b.key) FROM {schema}.beneath AS b WHERE b.kind = 'heads')),
            least(f.due_messages, (SELECT min(b.key) FROM {schema}.beneath AS b
                WHERE b.kind = 'due_messages')),
            least(f.leased_turns, (SELECT min(b.key) FROM {schema}.beneath AS b
                WHERE b.kind = 'leased_turns')),
            least(f.due_work, (SELECT min(b.key) FROM {schema}.beneath AS b WHERE b.kind = 'due_work')),
            least(f.leased_work, (SELECT min(b.key) FROM {schema}.beneath AS b WHERE b.kind = 'leased_work')),
            least(f.held_sessions, (SELECT min(b.key) FROM {schema}.beneath AS b
                WHERE b.kind = 'held_sessions'))
        INTO v_floors.turns, v_floors.work, v_floors.heads, v_floors.due_messages, v_floors.leased_turns,
            v_floors.due_work,
            v_floors.leased_work, v_floors.held_sessions
        FROM {schema}.floors AS f;
    ELSIF v_is_any IS NULL THEN
        -- The tables were emptied by hand.
        INSERT INTO {schema}.floors DEFAULT VALUES ON CONFLICT DO NOTHING;
        RETURN {schema}.read_floors(p_now, p_turn_ms, p_work_ms, p_session_ms);
    END IF;
    PERFORM {schema}.lengthen_leases(greatest(p_turn_ms, p_work_ms, p_session_ms));
    RETURN v_floors;
END
$function$
