-- Ends tries that failed and are to be repeated (S22): the lease ends, the error is kept, one more try has
-- ended, and the work becomes visible after its delay, with a delivery count of 0. The expired leases of the
-- work are forgotten, so that nobody excuses a delivery of a former try (S5). The session of the work counts
-- as used (S13). Each element is judged alone: one whose token is unknown ('lost', or 'withdrawn' if its work
-- was withdrawn; S12) or whose lease has expired ('ended') changes nothing (S4). If a token stands in the
-- array twice, the first element counts.
-- `tag` and `has_session` describe the work that becomes ready, now or after the delay.
-- Locks: `lines` of the sessions in the order of their keys, `worker_queue` in the order of id, `sessions`,
-- then `ended_leases`.
CREATE OR REPLACE FUNCTION {schema}.end_tries(
    p_tokens TEXT[], p_delay_ms BIGINT[], p_errors TEXT[], p_now_ms BIGINT DEFAULT NULL,
    p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL
) RETURNS TABLE (place INTEGER, code TEXT, tag TEXT, has_session BOOLEAN)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_before TEXT[];
    v_ids BIGINT[];
    v_tags TEXT[];
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_epochs BIGINT[];
    v_given TEXT[];
BEGIN
    -- Read this before give_work_back clears the tokens.
    SELECT array_agg(w.lock_token), array_agg(w.id), array_agg({schema}.plain_tag(w.tag)),
        array_agg(w.session_scope), array_agg(w.session_id), array_agg(w.epoch)
    INTO v_before, v_ids, v_tags, v_scopes, v_sessions, v_epochs
    FROM (SELECT DISTINCT * FROM unnest(p_tokens)) AS f (token)
    CROSS JOIN LATERAL (
        SELECT w.lock_token, w.id, w.tag, w.session_scope, w.session_id, w.epoch
            FROM {schema}.worker_queue AS w
            WHERE w.lock_token = f.token OFFSET 0
    ) AS w;
    IF v_before IS NOT NULL THEN
        v_given := {schema}.give_work_back(p_tokens, p_delay_ms, NULL, true, v_now, p_errors => p_errors);
    END IF;
    IF v_given IS NOT NULL THEN
        PERFORM {schema}.touch_sessions(array_agg(held.scope), array_agg(held.session),
            array_agg(held.epoch), v_now)
        FROM unnest(v_before, v_scopes, v_sessions, v_epochs) AS held (token, scope, session, epoch)
        WHERE held.token = ANY (v_given) AND held.session IS NOT NULL
        HAVING count(*) > 0;
        DELETE FROM {schema}.ended_leases AS e
        WHERE e.work_id = ANY (ARRAY(
            SELECT held.id FROM unnest(v_before, v_ids) AS held (token, id) WHERE held.token = ANY (v_given)
        ));
        PERFORM {schema}.notify(p_notify, p_me);
    END IF;
    RETURN QUERY
    SELECT f.place::integer,
        CASE
            WHEN f.nth = 1 AND f.token = ANY (v_given) THEN 'ok'
            WHEN (SELECT 1 FROM {schema}.worker_queue AS w WHERE w.lock_token = f.token) = 1 THEN 'ended'
            ELSE {schema}.code_of_lost_work(f.token)
        END,
        held.tag, held.session IS NOT NULL
    FROM (
        SELECT f.token, f.place, row_number() OVER (PARTITION BY f.token ORDER BY f.place) AS nth
        FROM unnest(p_tokens) WITH ORDINALITY AS f (token, place)
    ) AS f
    LEFT JOIN unnest(v_before, v_tags, v_sessions) AS held (token, tag, session)
        ON held.token = f.token
    ORDER BY f.place;
END
$function$
