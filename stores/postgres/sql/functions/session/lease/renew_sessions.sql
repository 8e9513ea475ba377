-- Renews the live sessions of an owner that are in use, and releases sessions whose work the owner does not
-- take (S13). Returns one row per live session in the order of keys: 'renewed', 'idle' (not renewed) or
-- 'untaken' (released). If the call comes from an older incarnation of the node, it returns one row 'fenced'
-- with the newest incarnation as epoch.
-- Idle: no work of the session is leased, and its last activity is longer ago than the idle timeout; an owned
-- session has its own timeout. Untaken: work has been ready for longer than p_untaken_ms, no work is leased,
-- and the owner is full, does not accept the tag, or, as the worker p_worker, is not given work with that
-- route (S21); p_worker NULL is given all; or, without p_terms, does not know the terms of the work (S22). Of
-- a serial session only the first in line is waited for. Sessions that look untaken are locked, and then all
-- sessions are judged again, because work may have been leased meanwhile.
-- Locks: those of sweep_work, then `lines` of the untaken sessions and `sessions`, both in the order of keys.
CREATE OR REPLACE FUNCTION {schema}.renew_sessions(
    p_owner TEXT, p_incarnation BIGINT, p_extend_ms BIGINT, p_idle_ms BIGINT, p_untaken_ms BIGINT,
    p_tags TEXT[],
    p_full BOOLEAN, p_now_ms BIGINT DEFAULT NULL, p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL,
    p_worker TEXT DEFAULT NULL, p_terms BOOLEAN DEFAULT false
) RETURNS TABLE (outcome TEXT, scope TEXT, session TEXT, epoch BIGINT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_until BIGINT := {schema}.after_ms({schema}.now_ms(p_now_ms), p_extend_ms);
    v_newest BIGINT;
    v_floors {schema}.floors;
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_epochs BIGINT[];
    v_outcomes TEXT[];
    v_locked_scopes TEXT[];
    v_locked_sessions TEXT[];
    v_untaken_scopes TEXT[];
    v_untaken_sessions TEXT[];
    v_untaken_epochs BIGINT[];
    v_places BIGINT[];
    v_rows TID[];
    v_routes TEXT[] := coalesce({schema}.open_routes(p_worker, p_tags, v_now), '{}');
BEGIN
    IF p_incarnation IS NOT NULL THEN
        v_newest := {schema}.check_incarnation(p_owner, p_incarnation);
        IF v_newest IS NOT NULL THEN
            RETURN QUERY SELECT 'fenced', NULL::text, NULL::text, v_newest;
            RETURN;
        END IF;
    END IF;
    v_floors := {schema}.read_floors(v_now);
    PERFORM {schema}.lengthen_leases(p_extend_ms);
    PERFORM {schema}.sweep_work(v_now, v_floors.due_work, v_floors.leased_work);

    FOR v_round IN 1..2 LOOP
        SELECT array_agg(judged.instance_id), array_agg(judged.session_id), array_agg(judged.epoch),
            array_agg(CASE
                WHEN judged.is_running THEN 'renewed'
                -- It became untaken after the lines were locked: leave it to the next renewal.
                WHEN judged.waits AND v_round = 2 AND NOT EXISTS (
                    SELECT 1 FROM unnest(v_locked_scopes, v_locked_sessions) AS locked (scope, session)
                    WHERE locked.scope = judged.instance_id AND locked.session = judged.session_id
                ) THEN 'renewed'
                WHEN judged.waits THEN 'untaken'
                WHEN judged.rests THEN 'idle'
                ELSE 'renewed'
            END)
        INTO v_scopes, v_sessions, v_epochs, v_outcomes
        FROM (
            SELECT s.instance_id, s.session_id, s.epoch,
                (
                    SELECT 1 FROM {schema}.worker_queue AS w
                    WHERE w.session_id = s.session_id AND w.session_scope = s.instance_id AND w.state = 2
                      AND w.locked_until > v_now
                    LIMIT 1
                ) IS NOT NULL AS is_running,
                (
                    SELECT 1 FROM {schema}.heads AS h
                    WHERE h.instance_id = s.instance_id AND h.session_id = s.session_id
                      AND (
                          SELECT 1 FROM {schema}.worker_queue AS w
                          WHERE w.session_id = h.session_id AND w.session_scope = h.instance_id
                              AND w.state = 1
                            AND w.tag = h.tag AND w.since < v_now - least(p_untaken_ms, v_now)
                            AND (NOT s.serial OR w.id = h.head)
                            AND (p_full OR (NOT p_terms AND w.call IS NOT NULL)
                                OR CASE WHEN h.tag < '@' THEN h.tag <> ALL (p_tags)
                                    ELSE h.tag <> ALL (v_routes) END)
                          LIMIT 1
                      ) = 1
                    LIMIT 1
                ) IS NOT NULL AS waits,
                CASE
                    WHEN s.instance_id = '' THEN {schema}.after_ms(s.last_activity_at, p_idle_ms) <= v_now
                    ELSE coalesce({schema}.after_ms(s.last_activity_at, s.idle_timeout) <= v_now, false)
                END AS rests
            FROM {schema}.sessions AS s
            WHERE s.held AND s.worker_id = p_owner AND s.locked_until > v_now AND s.closed_epoch IS NULL
              AND (p_incarnation IS NULL OR s.incarnation IS NOT DISTINCT FROM p_incarnation)
        ) AS judged;
        IF v_sessions IS NULL THEN
            RETURN;
        END IF;

        SELECT array_agg(s.scope), array_agg(s.session), array_agg(s.epoch)
        INTO v_untaken_scopes, v_untaken_sessions, v_untaken_epochs
        FROM unnest(v_scopes, v_sessions, v_epochs, v_outcomes) AS s (scope, session, epoch, outcome)
        WHERE s.outcome = 'untaken';
        EXIT WHEN v_untaken_sessions IS NULL OR v_round = 2;
        PERFORM {schema}.lock_lines(v_untaken_scopes, v_untaken_sessions);
        v_locked_scopes := v_untaken_scopes;
        v_locked_sessions := v_untaken_sessions;
    END LOOP;
    -- Lock the sessions to renew and to release together, in one order. A session that was claimed or
    -- released meanwhile is not found and so not reported.
    SELECT array_agg(s.ctid) FILTER (WHERE judged.outcome = 'renewed') INTO v_rows
    FROM (
        SELECT judged.scope COLLATE "C" AS scope, judged.session COLLATE "C" AS session, judged.epoch,
            judged.outcome
        FROM unnest(v_scopes, v_sessions, v_epochs, v_outcomes) AS judged (scope, session, epoch, outcome)
        WHERE judged.outcome <> 'idle'
        ORDER BY 1, 2
    ) AS judged
    CROSS JOIN LATERAL (
        SELECT s.ctid FROM {schema}.sessions AS s
        WHERE s.instance_id = judged.scope AND s.session_id = judged.session AND s.epoch = judged.epoch
          AND s.held AND s.locked_until > v_now
        FOR UPDATE
    ) AS s;
    IF v_untaken_sessions IS NOT NULL THEN
        v_places := {schema}.let_go(v_untaken_scopes, v_untaken_sessions, v_untaken_epochs, v_now,
            'untaken');
        PERFORM {schema}.notify(p_notify, p_me);
    END IF;
    RETURN QUERY
    WITH renewed AS (
        UPDATE {schema}.sessions AS s SET locked_until = v_until
        WHERE s.ctid = ANY (v_rows)
        RETURNING s.instance_id, s.session_id, s.epoch
    )
    SELECT told.outcome, told.scope, told.session, told.epoch
    FROM (
        SELECT 'renewed' AS outcome, r.instance_id AS scope, r.session_id AS session,
            r.epoch FROM renewed AS r
        UNION ALL
        SELECT 'idle', s.scope, s.session, s.epoch
        FROM unnest(v_scopes, v_sessions, v_epochs, v_outcomes) AS s (scope, session, epoch, outcome)
        WHERE s.outcome = 'idle'
        UNION ALL
        SELECT 'untaken', v_untaken_scopes[p.place], v_untaken_sessions[p.place], v_untaken_epochs[p.place]
        FROM unnest(v_places) AS p (place)
    ) AS told
    ORDER BY told.scope COLLATE "C", told.session COLLATE "C";
    PERFORM {schema}.lower_floor('held_sessions', v_until);
END
$function$
