-- Marks sessions with an expired lease as free, so that any worker can claim them (S13). Handles a bounded
-- number; if other transactions have locked all of those, it looks once more with a higher bound. If no lease
-- has expired, it costs one index lookup. p_held is the floor: the time at which the index scan starts.
-- Returns whether expired sessions may be left, because they are locked or beyond the bound.
-- Locks: `lines`, then `sessions`, both in the order of keys and skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.sweep_sessions(p_now BIGINT, p_held BIGINT DEFAULT 0) RETURNS BOOLEAN
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_bound INTEGER;
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_rows TID[];
    v_found INTEGER;
BEGIN
    FOREACH v_bound IN ARRAY ARRAY[256, 2048] LOOP
        SELECT array_agg(ended.instance_id), array_agg(ended.session_id) INTO v_scopes, v_sessions
        FROM (
            SELECT s.instance_id, s.session_id FROM {schema}.sessions AS s
            WHERE s.held AND s.locked_until BETWEEN p_held AND p_now
            ORDER BY s.locked_until LIMIT v_bound
        ) AS ended;
        IF v_sessions IS NULL THEN
            RETURN false;
        END IF;
        v_found := cardinality(v_sessions);

        SELECT array_agg(s.ctid), array_agg(line.scope), array_agg(line.session) INTO v_rows, v_scopes,
            v_sessions
        FROM {schema}.hold_lines(v_scopes, v_sessions) AS line
        CROSS JOIN LATERAL (
            SELECT s.ctid FROM {schema}.sessions AS s
            WHERE s.instance_id = line.scope AND s.session_id = line.session AND s.held
                AND s.locked_until <= p_now
            FOR UPDATE SKIP LOCKED
        ) AS s;
        IF v_rows IS NOT NULL THEN
            -- The former owner of a closed session is not its last owner.
            UPDATE {schema}.sessions AS s
            SET held = false, closed_epoch = NULL,
                worker_id = CASE WHEN s.closed_epoch IS NULL THEN s.worker_id ELSE '' END,
                incarnation = CASE WHEN s.closed_epoch IS NULL THEN s.incarnation END
            WHERE s.ctid = ANY (v_rows);
            PERFORM {schema}.own_heads(v_scopes, v_sessions, '');
        END IF;
        EXIT WHEN v_rows IS NOT NULL OR v_found < v_bound;
    END LOOP;
    RETURN v_found >= v_bound OR coalesce(cardinality(v_rows), 0) < v_found;
END
$function$
