-- Makes sure that the lines of sessions are there and locks them, so that nobody else changes their heads or their holder
-- (S13). Elements without a session are passed over.
-- Locks: lines, in the order of their keys. A line that another transaction removed meanwhile is made again.
CREATE OR REPLACE FUNCTION {schema}.lock_lines(p_scopes TEXT[], p_sessions TEXT[]) RETURNS VOID
LANGUAGE plpgsql
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET enable_hashjoin TO off
SET enable_mergejoin TO off
SET plan_cache_mode TO force_generic_plan
AS $function$
#variable_conflict use_column
DECLARE
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_locked INTEGER;
BEGIN
    SELECT array_agg(scope), array_agg(session) INTO v_scopes, v_sessions
    FROM (
        SELECT DISTINCT wanted.scope, wanted.session
        FROM unnest(p_scopes, p_sessions) AS wanted (scope, session)
        WHERE wanted.session IS NOT NULL
    ) AS wanted;
    IF v_sessions IS NULL THEN
        RETURN;
    END IF;
    FOR v_try IN 1..100 LOOP
        SELECT count(*) INTO v_locked FROM (
            SELECT 1 FROM unnest(v_scopes, v_sessions) AS wanted (scope, session)
            JOIN {schema}.lines AS l ON l.instance_id = wanted.scope AND l.session_id = wanted.session
            ORDER BY l.instance_id, l.session_id
            FOR UPDATE OF l
        ) AS locked;
        IF v_locked = cardinality(v_sessions) THEN
            RETURN;
        END IF;
        INSERT INTO {schema}.lines (instance_id, session_id)
        SELECT wanted.scope, wanted.session
        FROM unnest(v_scopes, v_sessions) AS wanted (scope, session)
        ORDER BY wanted.scope COLLATE "C", wanted.session COLLATE "C"
        ON CONFLICT DO NOTHING;
    END LOOP;
    RAISE EXCEPTION 'sessions are removed as fast as they are named' USING ERRCODE = 'serialization_failure';
END
$function$
