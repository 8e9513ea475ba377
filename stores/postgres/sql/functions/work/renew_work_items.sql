-- Extends the leases of activities (S4), and keeps their sessions from going idle (S13). Each element is judged alone: one whose
-- token holds nothing ('lost') or whose lease has ended ('ended') changes nothing.
-- Locks: worker_queue in the order of id, sessions.
CREATE OR REPLACE FUNCTION {schema}.renew_work_items(
    p_tokens TEXT[], p_extend_ms BIGINT[], p_now_ms BIGINT DEFAULT NULL
) RETURNS TABLE (place INTEGER, code TEXT)
LANGUAGE plpgsql
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET enable_hashjoin TO off
SET enable_mergejoin TO off
SET plan_cache_mode TO force_generic_plan
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_tokens TEXT[];
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_epochs BIGINT[];
BEGIN
    WITH live AS (
        SELECT w.id, w.lock_token
        FROM (SELECT DISTINCT * FROM unnest(p_tokens)) AS f (token)
        JOIN {schema}.worker_queue AS w ON w.lock_token = f.token
        WHERE w.locked_until > v_now
        ORDER BY w.id
        FOR UPDATE OF w
    ), renewed AS (
        UPDATE {schema}.worker_queue AS w
        -- The last element with the token decides, as if they came one after the other.
        SET locked_until = {schema}.after_ms(v_now, (
            SELECT p_extend_ms[f.place] FROM unnest(p_tokens) WITH ORDINALITY AS f (token, place)
            WHERE f.token = live.lock_token ORDER BY f.place DESC LIMIT 1
        ))
        FROM live WHERE w.id = live.id
        RETURNING w.lock_token, w.session_scope, w.session_id, w.epoch
    )
    SELECT array_agg(renewed.lock_token),
        array_agg(renewed.session_scope) FILTER (WHERE renewed.session_id IS NOT NULL),
        array_agg(renewed.session_id) FILTER (WHERE renewed.session_id IS NOT NULL),
        array_agg(renewed.epoch) FILTER (WHERE renewed.session_id IS NOT NULL)
    INTO v_tokens, v_scopes, v_sessions, v_epochs
    FROM renewed;
    IF v_sessions IS NOT NULL THEN
        PERFORM {schema}.touch_sessions(v_scopes, v_sessions, v_epochs, v_now);
    END IF;
    RETURN QUERY
    SELECT f.place::integer,
        CASE
            WHEN f.token = ANY (v_tokens) THEN 'ok'
            WHEN (SELECT 1 FROM {schema}.worker_queue AS w WHERE w.lock_token = f.token) = 1 THEN 'ended'
            ELSE 'lost'
        END
    FROM unnest(p_tokens) WITH ORDINALITY AS f (token, place)
    ORDER BY f.place;
END
$function$
