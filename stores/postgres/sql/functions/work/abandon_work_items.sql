-- Abandons leases of work (S6). With an element of p_delay_ms the work becomes visible after that delay, with
-- NULL it is ready at once. Each element is judged alone: one whose token is unknown ('lost', or 'withdrawn'
-- if its work was withdrawn; S12) or whose lease has expired ('ended') changes nothing (S4). If a token stands in the array twice, the first element counts.
-- `tag` and `has_session` describe the work that becomes ready, now or after the delay.
-- Locks: `lines` of the sessions in the order of their keys, then `worker_queue` in the order of id.
CREATE OR REPLACE FUNCTION {schema}.abandon_work_items(
    p_tokens TEXT[], p_delay_ms BIGINT[], p_uncounted BOOLEAN[], p_now_ms BIGINT DEFAULT NULL,
    p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL
) RETURNS TABLE (place INTEGER, code TEXT, tag TEXT, has_session BOOLEAN)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_before TEXT[];
    v_tags TEXT[];
    v_has_session BOOLEAN[];
    v_given TEXT[];
BEGIN
    -- Read this before give_work_back clears the tokens.
    SELECT array_agg(w.lock_token), array_agg({schema}.plain_tag(w.tag)), array_agg(w.session_id IS NOT NULL)
    INTO v_before, v_tags, v_has_session
    FROM (SELECT DISTINCT * FROM unnest(p_tokens)) AS f (token)
    CROSS JOIN LATERAL (
        SELECT w.lock_token, w.tag, w.session_id FROM {schema}.worker_queue AS w
            WHERE w.lock_token = f.token OFFSET 0
    ) AS w;
    IF v_before IS NOT NULL THEN
        v_given := {schema}.give_work_back(p_tokens, p_delay_ms, p_uncounted, true, v_now);
        IF v_given IS NOT NULL THEN
            PERFORM {schema}.notify(p_notify, p_me);
        END IF;
    END IF;
    RETURN QUERY
    SELECT f.place::integer,
        CASE
            WHEN f.nth = 1 AND f.token = ANY (v_given) THEN 'ok'
            WHEN f.nth = 1 AND held.token IS NOT NULL THEN 'ended'
            ELSE {schema}.code_of_lost_work(f.token)
        END,
        held.tag, held.has_session
    FROM (
        SELECT f.token, f.place, row_number() OVER (PARTITION BY f.token ORDER BY f.place) AS nth
        FROM unnest(p_tokens) WITH ORDINALITY AS f (token, place)
    ) AS f
    LEFT JOIN unnest(v_before, v_tags, v_has_session) AS held (token, tag, has_session)
        ON held.token = f.token
    ORDER BY f.place;
END
$function$
