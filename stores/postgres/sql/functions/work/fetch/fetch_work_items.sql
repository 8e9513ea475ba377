-- Leases up to p_count pieces of work, the oldest that the requests accept, and counts the deliveries (S5,
-- S13, S14, S18). One call serves many requests, which differ only in p_worker_ids. p_tags NULL accepts all
-- tags. p_owner NULL leases no work of sessions. With an owner, p_claim also claims sessions without an
-- owner; without p_claim only the sessions named by p_only_... are served, as far as the owner holds them.
-- p_out_... names sessions to skip. p_worker is the worker that asks: work with a route that it does not take
-- is left out (S21); NULL takes all. Without p_terms the caller is a build that does not know the terms of
-- calls: it is given only work without them (S22).
-- Returns one row of kind 'lease' per lease, in the place of its request. If there are fewer leases than
-- requests, a row of kind 'none' tells whether to look again at once, because work was found but locked by
-- another transaction, and else when. A call from an older incarnation of a node gets one row of kind
-- 'fenced'. The sum of `told` is the number of messages that were sent to watchers of claimed sessions.
-- With p_unsynced the transaction does not wait for the disk, unless it leases work of a session. A crash of
-- the server may lose a lease without harm, but the owner of a session relies on the time until which it owns
-- it.
-- With p_careful the item of work that the database cannot read, or whose terms it cannot read, is NULL: for
-- a caller whose fetch such work has failed (S15).
-- Work is found by index without locks and merged by age; a session contributes all its ready work, a serial
-- session only its head (S20). Then only the chosen rows are locked and judged again. If other transactions
-- have locked them, further rounds skip those sessions, and the last rounds look at many sessions at once: an
-- open transaction hides only the work that it has locked itself.
-- Locks: `instance_locks` of watchers, `lines`, `sessions`, `worker_queue`, in this order, each in the order
-- of its keys, all skipping locked rows: a fetch never waits.
CREATE OR REPLACE FUNCTION {schema}.fetch_work_items(
    p_count INTEGER, p_tags TEXT[], p_worker_ids TEXT[], p_lock_ms BIGINT,
    p_owner TEXT DEFAULT NULL, p_incarnation BIGINT DEFAULT NULL, p_session_lock_ms BIGINT DEFAULT NULL,
    p_claim BOOLEAN DEFAULT false, p_only_scopes TEXT[] DEFAULT NULL, p_only_sessions TEXT[] DEFAULT NULL,
    p_out_scopes TEXT[] DEFAULT NULL, p_out_sessions TEXT[] DEFAULT NULL, p_now_ms BIGINT DEFAULT NULL,
    p_unsynced BOOLEAN DEFAULT false, p_careful BOOLEAN DEFAULT false, p_worker TEXT DEFAULT NULL,
    p_terms BOOLEAN DEFAULT false
) RETURNS TABLE (
    kind TEXT, place INTEGER, token TEXT, item TEXT, attempt INTEGER, instance_id TEXT, orchestration TEXT,
    version TEXT,
    traceparent TEXT, session_scope TEXT, session_id TEXT, epoch BIGINT, claim TEXT, claimed_from TEXT,
    since BIGINT, told INTEGER,
    now_ms BIGINT, again BOOLEAN, next_ms BIGINT, incarnation BIGINT, delivery INTEGER, call TEXT,
    tries INTEGER, last_error TEXT, first_fetched BIGINT
)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_until BIGINT := {schema}.after_ms({schema}.now_ms(p_now_ms), p_lock_ms);
    v_again BOOLEAN;
    v_leased INTEGER := 0;
    v_found INTEGER;
    v_wanted INTEGER;
    v_page INTEGER;
    v_is_left BOOLEAN := false;
    v_newest BIGINT;
    v_floors {schema}.floors;
    -- Sessions to skip. The length of the scope makes the joined text unambiguous.
    v_out TEXT[];
    -- Candidates: the oldest ready work, with its sessions.
    v_ids BIGINT[];
    v_scopes TEXT[];
    v_sessions TEXT[];
    -- Heads whose work is not ready.
    v_stale_scopes TEXT[];
    v_stale_sessions TEXT[];
    v_stale_tags TEXT[];
    -- The tags to look for: those of the call, and the routed ones that the worker takes. With all tags
    -- (NULL) the routed ones are beside them.
    v_tags TEXT[] := p_tags;
    v_routes TEXT[] := {schema}.open_routes(p_worker, p_tags, v_now);
    v_has_routes BOOLEAN := v_routes IS NOT NULL;
BEGIN
    IF p_tags IS NOT NULL AND v_has_routes THEN
        v_tags := p_tags || v_routes;
        v_routes := NULL;
    END IF;
    IF p_owner IS NOT NULL AND p_incarnation IS NOT NULL THEN
        v_newest := {schema}.check_incarnation(p_owner, p_incarnation);
        IF v_newest IS NOT NULL THEN
            RETURN QUERY SELECT 'fenced', NULL::integer, NULL::text, NULL::text, NULL::integer, NULL::text,
                NULL::text, NULL::text, NULL::text,
                NULL::text, NULL::text, NULL::bigint, NULL::text, NULL::text, NULL::bigint, 0, v_now, false,
                    NULL::bigint, v_newest, NULL::integer, NULL::text, NULL::integer, NULL::text,
                    NULL::bigint;
            RETURN;
        END IF;
    END IF;
    v_floors := {schema}.read_floors(
        v_now, NULL, p_lock_ms, CASE WHEN p_owner IS NOT NULL THEN coalesce(p_session_lock_ms, p_lock_ms) END
    );
    v_again := false;
    IF (
        SELECT coalesce(
            (SELECT 1 FROM {schema}.worker_queue AS w
                WHERE w.state = 0 AND w.visible_ms BETWEEN v_floors.due_work AND v_now LIMIT 1),
            CASE WHEN v_floors.leased_work <= v_now THEN (
                SELECT 1 FROM {schema}.worker_queue AS w
                WHERE w.state = 2 AND w.locked_until BETWEEN v_floors.leased_work AND v_now LIMIT 1
            ) END
        )
    ) = 1 THEN
        v_again := {schema}.sweep_work(v_now, v_floors.due_work, v_floors.leased_work);
        -- The sweep may have made rows runnable below the floors.
        v_floors := {schema}.read_floors(v_now);
    END IF;
    IF v_floors.held_sessions <= v_now THEN
        v_again := {schema}.sweep_sessions(v_now, v_floors.held_sessions) OR v_again;
    END IF;

    IF p_owner IS NOT NULL THEN
        v_out := ARRAY(
            SELECT length(o.scope) || ':' || o.scope || o.session
                FROM unnest(p_out_scopes, p_out_sessions) AS o (scope, session)
        );
        -- Each round skips the sessions that other transactions had locked in the round before.
        FOR v_round IN 1..5 LOOP
            v_wanted := p_count - v_leased;
            v_page := CASE WHEN v_round <= 3 THEN v_wanted
                ELSE greatest(v_wanted, CASE v_round WHEN 4 THEN 16 ELSE 256 END) END;
            SELECT array_agg(c.id), array_agg(c.scope), array_agg(c.session) INTO v_ids, v_scopes, v_sessions
            FROM {schema}.find_session_work(
                v_page, v_tags, p_owner, p_incarnation, p_claim, p_only_scopes, p_only_sessions, v_out, v_now,
                v_floors.heads, v_round > 3, v_routes, NOT p_terms
            ) AS c;
            EXIT WHEN v_ids IS NULL;
            SELECT array_agg(c.id), array_agg(c.scope), array_agg(c.session) INTO v_ids, v_scopes, v_sessions
            FROM (
                SELECT s.id, s.scope, s.session FROM unnest(v_ids, v_scopes, v_sessions) AS s (id, scope,
                    session)
                UNION ALL
                SELECT f.id, NULL, NULL FROM {schema}.find_free_work(v_wanted, v_tags, v_floors.work,
                    v_round > 1, v_routes, NOT p_terms) AS f (id)
                ORDER BY id LIMIT v_page
            ) AS c;
            RETURN QUERY SELECT l.kind, l.place, l.token,
                CASE WHEN p_careful THEN {schema}.whole_or_null(l.item, l.call) ELSE l.item END, l.attempt,
                l.instance_id, l.orchestration, l.version, l.traceparent, l.session_scope, l.session_id,
                l.epoch, l.claim, l.claimed_from, l.since, l.told, v_now, NULL::boolean, NULL::bigint,
                NULL::bigint, l.delivery,
                CASE WHEN p_careful THEN {schema}.text_or_null(l.call) ELSE l.call END, l.tries,
                CASE WHEN p_careful THEN {schema}.text_or_null(l.last_error) ELSE l.last_error END,
                l.first_fetched
            FROM {schema}.lease_session_work(
                v_ids, v_scopes, v_sessions, p_worker_ids[v_leased + 1:], v_leased, v_until, p_owner,
                p_incarnation,
                {schema}.after_ms(v_now, coalesce(p_session_lock_ms, p_lock_ms)), p_claim, v_now, v_wanted
            ) AS l;
            GET DIAGNOSTICS v_found = ROW_COUNT;
            v_leased := v_leased + v_found;
            EXIT WHEN v_found = cardinality(v_ids) OR v_leased = p_count;
            v_again := true;
            -- Refresh heads whose work is not ready, or they would be found again and again. A transaction
            -- with an old snapshot wrote them, or they were changed by hand.
            SELECT array_agg(h.instance_id), array_agg(h.session_id), array_agg(h.tag)
            INTO v_stale_scopes, v_stale_sessions, v_stale_tags
            FROM (SELECT DISTINCT * FROM unnest(v_scopes, v_sessions)) AS c (scope, session)
            CROSS JOIN LATERAL (
                SELECT h.instance_id, h.session_id, h.tag, h.head, h.bare_head FROM {schema}.heads AS h
                WHERE h.instance_id = c.scope AND h.session_id = c.session
                OFFSET 0
            ) AS h
            WHERE (SELECT w.state FROM {schema}.worker_queue AS w WHERE w.id = h.head) IS DISTINCT FROM 1
              OR (h.bare_head <> h.head AND (
                  SELECT w.state FROM {schema}.worker_queue AS w WHERE w.id = h.bare_head
              ) IS DISTINCT FROM 1);
            IF v_stale_sessions IS NOT NULL THEN
                SELECT array_agg(stale.scope), array_agg(stale.session), array_agg(stale.tag)
                INTO v_stale_scopes, v_stale_sessions, v_stale_tags
                FROM {schema}.hold_lines(v_stale_scopes, v_stale_sessions) AS line
                JOIN unnest(v_stale_scopes, v_stale_sessions, v_stale_tags) AS stale (scope, session, tag)
                    ON stale.scope = line.scope AND stale.session = line.session;
                PERFORM {schema}.refresh_heads(v_stale_scopes, v_stale_sessions, v_stale_tags);
            END IF;
            -- A session whose head has changed since is not skipped.
            v_out := v_out || ARRAY(
                SELECT DISTINCT length(c.scope) || ':' || c.scope || c.session
                FROM unnest(v_ids, v_scopes, v_sessions) AS c (id, scope, session)
                WHERE (
                    SELECT 1 FROM {schema}.heads AS h
                    WHERE h.instance_id = c.scope AND h.session_id = c.session
                      AND CASE WHEN p_terms THEN h.head ELSE h.bare_head END <= c.id
                      AND CASE WHEN v_tags IS NULL THEN h.tag < '@' OR h.tag = ANY (v_routes)
                          ELSE h.tag = ANY (v_tags) END
                    LIMIT 1
                ) = 1
            );
        END LOOP;
    END IF;

    IF p_unsynced AND v_leased = 0 THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF v_leased < p_count THEN
        RETURN QUERY SELECT l.kind, l.place, l.token,
                CASE WHEN p_careful THEN {schema}.whole_or_null(l.item, l.call) ELSE l.item END, l.attempt,
                l.instance_id, l.orchestration, l.version, l.traceparent, l.session_scope, l.session_id,
                l.epoch, l.claim, l.claimed_from, l.since, l.told, v_now, NULL::boolean, NULL::bigint,
                NULL::bigint, l.delivery,
                CASE WHEN p_careful THEN {schema}.text_or_null(l.call) ELSE l.call END, l.tries,
                CASE WHEN p_careful THEN {schema}.text_or_null(l.last_error) ELSE l.last_error END,
                l.first_fetched
        FROM {schema}.lease_free_work(p_count - v_leased, v_tags, p_worker_ids[v_leased + 1:], v_leased,
            v_until, v_floors.work, false, v_routes, v_now, NOT p_terms) AS l;
        GET DIAGNOSTICS v_found = ROW_COUNT;
        v_leased := v_leased + v_found;
        IF v_leased < p_count THEN
            -- Work that is still ready is locked by another transaction or was queued just now.
            v_is_left := EXISTS (
                SELECT 1 FROM {schema}.find_free_work(1, v_tags, v_floors.work, false, v_routes,
                    NOT p_terms)
            );
            IF v_is_left AND (cardinality(v_tags) > 1 OR cardinality(v_routes) > 0) THEN
                -- With several tags only a bounded number of rows was looked at: look past all locked rows.
                RETURN QUERY SELECT l.kind, l.place, l.token,
                CASE WHEN p_careful THEN {schema}.whole_or_null(l.item, l.call) ELSE l.item END, l.attempt,
                l.instance_id, l.orchestration, l.version, l.traceparent, l.session_scope, l.session_id,
                l.epoch, l.claim, l.claimed_from, l.since, l.told, v_now, NULL::boolean, NULL::bigint,
                NULL::bigint, l.delivery,
                CASE WHEN p_careful THEN {schema}.text_or_null(l.call) ELSE l.call END, l.tries,
                CASE WHEN p_careful THEN {schema}.text_or_null(l.last_error) ELSE l.last_error END,
                l.first_fetched
                FROM {schema}.lease_free_work(
                    p_count - v_leased, v_tags, p_worker_ids[v_leased + 1:], v_leased, v_until, v_floors.work,
                    true, v_routes, v_now, NOT p_terms
                ) AS l;
                GET DIAGNOSTICS v_found = ROW_COUNT;
                v_leased := v_leased + v_found;
            END IF;
        END IF;
    END IF;
    IF v_leased > 0 THEN
        PERFORM {schema}.lower_floor('leased_work', v_until);
        IF p_owner IS NOT NULL THEN
            PERFORM {schema}.lower_floor('held_sessions',
                {schema}.after_ms(v_now, coalesce(p_session_lock_ms, p_lock_ms)));
        END IF;
    END IF;
    IF v_leased < p_count THEN
        IF v_leased = 0 AND NOT v_again AND NOT v_is_left THEN
            v_again := {schema}.end_impossible_leases(v_now);
        END IF;
        RETURN QUERY SELECT 'none', NULL::integer, NULL::text, NULL::text, NULL::integer, NULL::text,
            NULL::text, NULL::text, NULL::text,
            NULL::text, NULL::text, NULL::bigint, NULL::text, NULL::text, NULL::bigint, 0, v_now, v_again
                OR v_is_left,
            least({schema}.next_work_moment(v_now, v_floors.leased_work, v_floors.held_sessions),
                CASE WHEN v_has_routes AND p_worker IS NOT NULL THEN {schema}.next_silence(v_now) END),
            NULL::bigint, NULL::integer, NULL::text, NULL::integer, NULL::text, NULL::bigint;
    END IF;
END
$function$
