-- Makes leased work available again (S6): work with a delay waits for it, other work is ready from now on.
-- With p_uncounted the delivery is not counted. With p_live only leases that have not expired are ended.
-- p_undelivered: the leases never reached their holders, so they are no deliveries at all, and a first fetch
-- was none. p_errors: the errors of tries that end with the leases; then the delivery count begins anew, and
-- the expired leases of the work count no more (S22).
-- Returns the tokens of the leases that were ended.
-- Locks: `lines` of the sessions in the order of their keys, then `worker_queue` in the order of id.
CREATE OR REPLACE FUNCTION {schema}.give_work_back(
    p_tokens TEXT[], p_delay_ms BIGINT[], p_uncounted BOOLEAN[], p_live BOOLEAN, p_now BIGINT,
    p_undelivered BOOLEAN DEFAULT false, p_errors TEXT[] DEFAULT NULL
) RETURNS TEXT[]
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_ids BIGINT[];
    v_tokens TEXT[];
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_tags TEXT[];
    v_oldest BIGINT;
    v_soonest BIGINT;
BEGIN
    SELECT array_agg(w.session_scope), array_agg(w.session_id) INTO v_scopes, v_sessions
    FROM unnest(p_tokens) AS f (token)
    CROSS JOIN LATERAL (
        SELECT w.session_scope, w.session_id FROM {schema}.worker_queue AS w
            WHERE w.lock_token = f.token OFFSET 0
    ) AS w
    WHERE w.session_id IS NOT NULL;
    IF v_sessions IS NOT NULL THEN
        PERFORM {schema}.lock_lines(v_scopes, v_sessions);
    END IF;

    SELECT array_agg(w.id), array_agg(w.lock_token) INTO v_ids, v_tokens
    FROM (
        SELECT DISTINCT held.id
        FROM unnest(p_tokens) AS f (token)
        CROSS JOIN LATERAL (
            SELECT w.id FROM {schema}.worker_queue AS w WHERE w.lock_token = f.token OFFSET 0
        ) AS held
        ORDER BY 1
    ) AS held
    CROSS JOIN LATERAL (
        SELECT w.id, w.lock_token, w.locked_until FROM {schema}.worker_queue AS w
        WHERE w.id = held.id AND w.lock_token = ANY (p_tokens)
        OFFSET 0
        FOR UPDATE
    ) AS w
    -- Judged after the lock: a concurrent renewal may have extended the lease.
    WHERE w.locked_until > p_now OR NOT p_live;
    IF v_ids IS NULL THEN
        RETURN NULL;
    END IF;
    WITH asked AS (
        -- If a token stands in the array twice, the first element counts.
        SELECT held.id,
            p_uncounted[array_position(p_tokens, held.token)] AS uncounted,
            p_errors[array_position(p_tokens, held.token)] AS error,
            {schema}.after_ms(p_now, p_delay_ms[array_position(p_tokens, held.token)]) AS visible
        FROM unnest(v_ids, v_tokens) AS held (id, token)
    ), given AS (
        UPDATE {schema}.worker_queue AS w
        SET state = CASE WHEN asked.visible > p_now THEN 0 ELSE 1 END,
            visible_ms = coalesce(asked.visible, w.visible_ms),
            since = p_now,
            attempt_count = CASE
                WHEN p_errors IS NOT NULL THEN 0
                WHEN asked.uncounted THEN greatest(w.attempt_count - 1, 0)
                ELSE w.attempt_count
            END,
            deliveries = CASE WHEN p_undelivered THEN greatest(w.deliveries - 1, 0) ELSE w.deliveries END,
            first_fetched = CASE WHEN p_undelivered AND w.deliveries <= 1 THEN NULL
                ELSE w.first_fetched END,
            tries = CASE WHEN p_errors IS NULL THEN w.tries ELSE least(w.tries, 2147483646) + 1 END,
            last_error = CASE WHEN p_errors IS NULL THEN w.last_error ELSE asked.error END,
            has_expired = w.has_expired AND p_errors IS NULL,
            lock_token = NULL, locked_until = NULL, epoch = NULL
        FROM asked WHERE w.id = asked.id
        RETURNING w.id, w.state, w.visible_ms, w.session_scope, w.session_id, w.tag
    )
    SELECT min(given.id) FILTER (WHERE given.session_id IS NULL AND given.state = 1),
        min(given.visible_ms) FILTER (WHERE given.state = 0),
        array_agg(given.session_scope) FILTER (WHERE given.session_id IS NOT NULL),
        array_agg(given.session_id) FILTER (WHERE given.session_id IS NOT NULL),
        array_agg(given.tag) FILTER (WHERE given.session_id IS NOT NULL)
    INTO v_oldest, v_soonest, v_scopes, v_sessions, v_tags
    FROM given;
    PERFORM {schema}.lower_floor('work', v_oldest);
    PERFORM {schema}.lower_floor('due_work', v_soonest);
    IF v_sessions IS NOT NULL THEN
        PERFORM {schema}.refresh_heads(v_scopes, v_sessions, v_tags);
    END IF;
    RETURN v_tokens;
END
$function$
