-- Moves sessions whose lease has ended to those that nobody holds (S13). Bounded: the next sweep goes on. One look at an index
-- when there is nothing to move. Tells whether something stays behind, because another transaction has it or because there
-- is more than the bound.
-- Locks: lines, then sessions, both in the order of keys and skipping what others have locked.
CREATE OR REPLACE FUNCTION {schema}.sweep_sessions(p_now BIGINT) RETURNS BOOLEAN
LANGUAGE plpgsql
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET enable_hashjoin TO off
SET enable_mergejoin TO off
SET plan_cache_mode TO force_generic_plan
AS $function$
#variable_conflict use_column
DECLARE
    v_bound CONSTANT INTEGER := 256;
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_found INTEGER;
    v_moved INTEGER;
BEGIN
    SELECT array_agg(ended.instance_id), array_agg(ended.session_id) INTO v_scopes, v_sessions
    FROM (
        SELECT s.instance_id, s.session_id FROM {schema}.sessions AS s
        WHERE s.held AND s.locked_until <= p_now
        ORDER BY s.locked_until LIMIT v_bound
    ) AS ended;
    IF v_sessions IS NULL THEN
        RETURN false;
    END IF;
    v_found := cardinality(v_sessions);

    SELECT array_agg(locked.instance_id), array_agg(locked.session_id) INTO v_scopes, v_sessions
    FROM (
        SELECT l.instance_id, l.session_id
        FROM unnest(v_scopes, v_sessions) AS ended (scope, session)
        JOIN {schema}.lines AS l ON l.instance_id = ended.scope AND l.session_id = ended.session
        ORDER BY l.instance_id, l.session_id
        FOR UPDATE OF l SKIP LOCKED
    ) AS locked;

    WITH ended AS (
        SELECT s.instance_id, s.session_id
        FROM unnest(v_scopes, v_sessions) AS locked (scope, session)
        JOIN {schema}.sessions AS s ON s.instance_id = locked.scope AND s.session_id = locked.session
        WHERE s.held AND s.locked_until <= p_now
        ORDER BY s.instance_id, s.session_id
        FOR UPDATE OF s SKIP LOCKED
    ), moved AS (
        UPDATE {schema}.sessions AS s SET held = false
        FROM ended WHERE s.instance_id = ended.instance_id AND s.session_id = ended.session_id
        RETURNING s.instance_id, s.session_id
    ), freed AS (
        UPDATE {schema}.heads AS h SET owner = ''
        FROM moved WHERE h.instance_id = moved.instance_id AND h.session_id = moved.session_id
    )
    SELECT count(*) INTO v_moved FROM moved;
    RETURN v_moved < v_found OR v_found >= v_bound;
END
$function$
