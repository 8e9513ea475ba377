-- Makes work ready whose time has come (S9) or whose lease has expired (S5). Expired leases are remembered,
-- so that their holders can excuse them. Handles a bounded number; if
-- other transactions have locked all of those, it looks once more with a higher bound. If nothing is due, it
-- costs one index lookup each. p_due and p_leased are the floors at which the index scans start. Returns
-- whether due work may be left, because it is locked or beyond the bound.
-- Locks: `lines` of the sessions in the order of their keys, then `worker_queue` in the order of id, both
-- skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.sweep_work(p_now BIGINT, p_due BIGINT DEFAULT 0,
    p_leased BIGINT DEFAULT 0) RETURNS BOOLEAN
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_bound INTEGER;
    v_due BIGINT[];
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_tags TEXT[];
    v_locked_scopes TEXT[];
    v_locked_sessions TEXT[];
    v_free BIGINT[];
    v_expired BIGINT[];
    v_tokens TEXT[];
    v_moved BIGINT;
    v_oldest BIGINT;
BEGIN
    FOREACH v_bound IN ARRAY ARRAY[256, 2048] LOOP
        SELECT array_agg(due.id),
            array_agg(due.session_scope) FILTER (WHERE due.session_id IS NOT NULL),
            array_agg(due.session_id) FILTER (WHERE due.session_id IS NOT NULL)
        INTO v_due, v_scopes, v_sessions
        FROM (
            (
                SELECT w.id, w.session_scope, w.session_id FROM {schema}.worker_queue AS w
                WHERE w.state = 0 AND w.visible_ms BETWEEN p_due AND p_now
                ORDER BY w.visible_ms LIMIT v_bound
            )
            UNION ALL
            (
                SELECT w.id, w.session_scope, w.session_id FROM {schema}.worker_queue AS w
                WHERE w.state = 2 AND w.locked_until BETWEEN p_leased AND p_now
                ORDER BY w.locked_until LIMIT v_bound
            )
        ) AS due;
        IF v_due IS NULL THEN
            RETURN false;
        END IF;

        IF v_sessions IS NOT NULL THEN
            SELECT array_agg(locked.scope), array_agg(locked.session) INTO v_locked_scopes, v_locked_sessions
            FROM {schema}.hold_lines(v_scopes, v_sessions) AS locked;
        END IF;

        SELECT array_agg(w.id), array_agg(w.id) FILTER (WHERE w.lock_token IS NOT NULL),
            array_agg(w.lock_token) FILTER (WHERE w.lock_token IS NOT NULL)
        INTO v_free, v_expired, v_tokens
        FROM (
            SELECT w.id, w.lock_token
            FROM (SELECT due.id FROM unnest(v_due) AS due (id) ORDER BY 1) AS due
            CROSS JOIN LATERAL (
                SELECT w.id, w.lock_token FROM {schema}.worker_queue AS w
                WHERE w.id = due.id
                  AND ((w.state = 0 AND w.visible_ms <= p_now) OR (w.state = 2 AND w.locked_until <= p_now))
                  AND (w.session_id IS NULL OR (
                      SELECT 1 FROM unnest(v_locked_scopes, v_locked_sessions) AS locked (scope, session)
                      WHERE locked.scope = w.session_scope AND locked.session = w.session_id
                  ) = 1)
                FOR UPDATE OF w SKIP LOCKED
            ) AS w
        ) AS w;
        IF v_expired IS NOT NULL THEN
            INSERT INTO {schema}.ended_leases (token, reason, work_id, until_ms)
            SELECT lost.token, 0, lost.id, p_now + 3600000
            FROM unnest(v_tokens, v_expired) AS lost (token, id)
            ON CONFLICT DO NOTHING;
        END IF;
        WITH moved AS (
            -- It has waited since it became visible or since its lease expired.
            UPDATE {schema}.worker_queue AS w
            SET state = 1, since = greatest(w.visible_ms, w.locked_until), unreadable = false,
                lock_token = NULL,
                locked_until = NULL, epoch = NULL, has_expired = w.has_expired OR w.lock_token IS NOT NULL,
                refused = false
            WHERE w.id = ANY (v_free)
            RETURNING w.id, w.session_scope, w.session_id, w.tag
        )
        SELECT count(*), min(moved.id) FILTER (WHERE moved.session_id IS NULL),
            array_agg(moved.session_scope) FILTER (WHERE moved.session_id IS NOT NULL),
            array_agg(moved.session_id) FILTER (WHERE moved.session_id IS NOT NULL),
            array_agg(moved.tag) FILTER (WHERE moved.session_id IS NOT NULL)
        INTO v_moved, v_oldest, v_scopes, v_sessions, v_tags
        FROM moved;
        PERFORM {schema}.lower_floor('work', v_oldest);
        IF v_sessions IS NOT NULL THEN
            PERFORM {schema}.refresh_heads(v_scopes, v_sessions, v_tags);
        END IF;
        EXIT WHEN v_moved > 0 OR cardinality(v_due) < v_bound;
    END LOOP;
    RETURN v_moved < cardinality(v_due) OR cardinality(v_due) >= v_bound;
END
$function$
