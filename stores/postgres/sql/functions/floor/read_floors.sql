-- Tells where the looks of a fetch begin, by the floors and by what is beneath them. Before that it tends the floors, if that is
-- due: when many ids were drawn since they were raised, when something is beneath them, and from time to time. The
-- parameters behind the time say how long the leases of instances, activities and sessions are that the caller takes.
-- Locks: none, unless they are tended.
CREATE OR REPLACE FUNCTION {schema}.read_floors(
    p_now BIGINT, p_turn_ms BIGINT DEFAULT NULL, p_work_ms BIGINT DEFAULT NULL, p_session_ms BIGINT DEFAULT NULL
) RETURNS {schema}.floors
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    -- How many ids are drawn before the floors are raised again: what that leaves behind fills some pages of an index.
    v_step CONSTANT BIGINT := 2048;
    -- How often they are raised at most because something is beneath them.
    v_pause_ms CONSTANT BIGINT := 1000;
    v_floors {schema}.floors;
    v_is_any BOOLEAN;
BEGIN
    SELECT f.* INTO v_floors FROM {schema}.floors AS f;
    IF NOT FOUND THEN
        -- Somebody has emptied the tables.
        INSERT INTO {schema}.floors DEFAULT VALUES ON CONFLICT DO NOTHING;
        SELECT f.* INTO v_floors FROM {schema}.floors AS f;
    END IF;
    v_is_any := EXISTS (SELECT 1 FROM {schema}.beneath);
    IF {schema}.is_healing_due(v_floors.healed_ms, p_now) OR (CASE
        WHEN v_floors.cycle IS NULL THEN (v_is_any AND p_now - v_floors.at_ms >= v_pause_ms)
            OR {schema}.ids_drawn() - v_floors.drawn >= v_step
        WHEN v_floors.horizon IS NULL THEN pg_current_xact_id_if_assigned() IS NULL
        ELSE {schema}.is_past(v_floors.horizon)
    END) THEN
        PERFORM {schema}.tend_floors(p_now, p_turn_ms, p_work_ms, p_session_ms);
        SELECT f.* INTO v_floors FROM {schema}.floors AS f;
        v_is_any := EXISTS (SELECT 1 FROM {schema}.beneath);
    END IF;
    IF v_is_any THEN
        v_floors.turns := least(v_floors.turns, (SELECT min(b.key) FROM {schema}.beneath AS b WHERE b.kind = 'turns'));
        v_floors.work := least(v_floors.work, (SELECT min(b.key) FROM {schema}.beneath AS b WHERE b.kind = 'work'));
        v_floors.heads := least(v_floors.heads, (SELECT min(b.key) FROM {schema}.beneath AS b WHERE b.kind = 'heads'));
        v_floors.due_messages := least(v_floors.due_messages,
            (SELECT min(b.key) FROM {schema}.beneath AS b WHERE b.kind = 'due_messages'));
        v_floors.leased_turns := least(v_floors.leased_turns,
            (SELECT min(b.key) FROM {schema}.beneath AS b WHERE b.kind = 'leased_turns'));
        v_floors.due_work := least(v_floors.due_work, (SELECT min(b.key) FROM {schema}.beneath AS b WHERE b.kind = 'due_work'));
        v_floors.leased_work := least(v_floors.leased_work,
            (SELECT min(b.key) FROM {schema}.beneath AS b WHERE b.kind = 'leased_work'));
        v_floors.held_sessions := least(v_floors.held_sessions,
            (SELECT min(b.key) FROM {schema}.beneath AS b WHERE b.kind = 'held_sessions'));
    END IF;
    RETURN v_floors;
END
$function$
