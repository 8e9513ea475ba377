-- Renews leases of work (S4) and marks their sessions as used (S13). Each element is judged alone: one whose
-- token is unknown ('lost', or 'withdrawn' if its work was withdrawn; S12) or whose lease has expired
-- ('ended') changes nothing.
-- Locks: `worker_queue` in the order of id, then `sessions` in the order of keys.
CREATE OR REPLACE FUNCTION {schema}.renew_work_items(
    p_tokens TEXT[], p_extend_ms BIGINT[], p_now_ms BIGINT DEFAULT NULL
) RETURNS TABLE (place INTEGER, code TEXT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_ids BIGINT[];
    v_tokens TEXT[];
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_epochs BIGINT[];
BEGIN
    v_ids := ARRAY(
        SELECT w.id
        FROM (
            SELECT DISTINCT held.id
            FROM unnest(p_tokens) AS f (token)
            CROSS JOIN LATERAL (
                SELECT w.id FROM {schema}.worker_queue AS w WHERE w.lock_token = f.token OFFSET 0
            ) AS held
            ORDER BY 1
        ) AS held
        CROSS JOIN LATERAL (
            SELECT w.id, w.locked_until FROM {schema}.worker_queue AS w
            WHERE w.id = held.id AND w.lock_token = ANY (p_tokens)
            OFFSET 0
            FOR UPDATE
        ) AS w
        -- Judged after the lock: a concurrent renewal may have extended the lease.
        WHERE w.locked_until > v_now
    );
    WITH renewed AS (
        UPDATE {schema}.worker_queue AS w
        -- If a token stands in the array more than once, the last element counts.
        SET locked_until = {schema}.after_ms(v_now, (
            SELECT p_extend_ms[f.place] FROM unnest(p_tokens) WITH ORDINALITY AS f (token, place)
            WHERE f.token = w.lock_token ORDER BY f.place DESC LIMIT 1
        ))
        WHERE w.id = ANY (v_ids)
        RETURNING w.lock_token, w.session_scope, w.session_id, w.epoch
    )
    SELECT array_agg(renewed.lock_token),
        array_agg(renewed.session_scope) FILTER (WHERE renewed.session_id IS NOT NULL),
        array_agg(renewed.session_id) FILTER (WHERE renewed.session_id IS NOT NULL),
        array_agg(renewed.epoch) FILTER (WHERE renewed.session_id IS NOT NULL)
    INTO v_tokens, v_scopes, v_sessions, v_epochs
    FROM renewed;
    PERFORM {schema}.lower_floor('leased_work', {schema}.after_ms(v_now,
        (SELECT min(e.ms) FROM unnest(p_extend_ms) AS e (ms))));
    IF v_sessions IS NOT NULL THEN
        PERFORM {schema}.touch_sessions(v_scopes, v_sessions, v_epochs, v_now);
    END IF;
    RETURN QUERY
    SELECT f.place::integer,
        CASE
            WHEN f.token = ANY (v_tokens) THEN 'ok'
            WHEN (SELECT 1 FROM {schema}.worker_queue AS w WHERE w.lock_token = f.token) = 1 THEN 'ended'
            ELSE {schema}.code_of_lost_work(f.token)
        END
    FROM unnest(p_tokens) WITH ORDINALITY AS f (token, place)
    ORDER BY f.place;
END
$function$
