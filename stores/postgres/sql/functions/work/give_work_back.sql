-- Gives leased activities back (S6): those with a delay wait, the others are ready since now; `uncounted` takes the attempt
-- back. With p_live only leases that have not ended. Returns the tokens of what was given back.
-- Locks: lines of the sessions, then worker_queue in the order of id.
CREATE OR REPLACE FUNCTION {schema}.give_work_back(
    p_tokens TEXT[], p_delay_ms BIGINT[], p_uncounted BOOLEAN[], p_live BOOLEAN, p_now BIGINT
) RETURNS TEXT[]
LANGUAGE plpgsql
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET enable_hashjoin TO off
SET enable_mergejoin TO off
SET plan_cache_mode TO force_generic_plan
AS $function$
#variable_conflict use_column
DECLARE
    v_tokens TEXT[];
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_tags TEXT[];
BEGIN
    SELECT array_agg(w.session_scope), array_agg(w.session_id) INTO v_scopes, v_sessions
    FROM unnest(p_tokens) AS f (token)
    JOIN {schema}.worker_queue AS w ON w.lock_token = f.token
    WHERE w.session_id IS NOT NULL;
    IF v_sessions IS NOT NULL THEN
        PERFORM {schema}.lock_lines(v_scopes, v_sessions);
    END IF;

    WITH asked AS (
        SELECT DISTINCT ON (f.token) f.token, f.uncounted,
            CASE WHEN f.delay IS NOT NULL THEN {schema}.after_ms(p_now, f.delay) END AS visible
        FROM unnest(p_tokens, p_delay_ms, p_uncounted) WITH ORDINALITY AS f (token, delay, uncounted, place)
        ORDER BY f.token, f.place
    ), held AS (
        SELECT w.id, asked.token, asked.uncounted, asked.visible
        FROM asked JOIN {schema}.worker_queue AS w ON w.lock_token = asked.token
        WHERE w.locked_until > p_now OR NOT p_live
        ORDER BY w.id
        FOR UPDATE OF w
    ), given AS (
        UPDATE {schema}.worker_queue AS w
        SET state = CASE WHEN held.visible > p_now THEN 0 ELSE 1 END,
            visible_ms = coalesce(held.visible, w.visible_ms),
            since = p_now,
            attempt_count = CASE WHEN held.uncounted THEN greatest(w.attempt_count - 1, 0) ELSE w.attempt_count END,
            lock_token = NULL, locked_until = NULL, epoch = NULL
        FROM held WHERE w.id = held.id
        RETURNING held.token, w.session_scope, w.session_id, w.tag
    )
    SELECT array_agg(given.token),
        array_agg(given.session_scope) FILTER (WHERE given.session_id IS NOT NULL),
        array_agg(given.session_id) FILTER (WHERE given.session_id IS NOT NULL),
        array_agg(given.tag) FILTER (WHERE given.session_id IS NOT NULL)
    INTO v_tokens, v_scopes, v_sessions, v_tags
    FROM given;
    IF v_sessions IS NOT NULL THEN
        PERFORM {schema}.refresh_heads(v_scopes, v_sessions, v_tags);
    END IF;
    RETURN v_tokens;
END
$function$
