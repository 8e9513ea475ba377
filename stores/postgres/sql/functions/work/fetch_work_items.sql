-- Leases the oldest activities that requests accept, up to p_count, and counts the attempts (S5, S13, S14, S18). The requests
-- of one call differ in nothing but p_worker_ids. p_tags NULL accepts all. p_owner NULL asks for no sessions; with one,
-- p_claim also claims sessions that nobody holds, and without it only the named sessions are served, as far as the owner
-- holds them. p_out_... names sessions that are left out.
--
-- Gives one row for each lease, in the place of the request that gets it; if there are fewer than asked for, one row of the
-- kind 'none' says whether to look again at once, because somebody else had what was found, and else when to. A call by an
-- earlier start of a node gives one row of the kind 'fenced'. The sum of `told` counts the messages that claims sent to watchers.
--
-- With p_unsynced the transaction does not wait for the disk, unless it leases work of a session: a lease that a crash of the
-- server takes back does no harm, but whoever holds a session relies on until when.
--
-- What is runnable is found by index and without locks, and merged by age; a session gives as many as it has, a serial one only
-- its head (S20). Then only what is taken is locked, and judged again. Where others have what was found, the next rounds step over
-- it, and the last ones look at many sessions at once: one transaction that stays open hides no work but what it has itself.
-- Locks: instance_locks of watchers, lines, sessions, worker_queue, in this order, each in its own order, and all skipping what
-- others have locked: a fetch waits for nobody.
CREATE OR REPLACE FUNCTION {schema}.fetch_work_items(
    p_count INTEGER, p_tags TEXT[], p_worker_ids TEXT[], p_lock_ms BIGINT,
    p_owner TEXT DEFAULT NULL, p_incarnation BIGINT DEFAULT NULL, p_session_lock_ms BIGINT DEFAULT NULL,
    p_claim BOOLEAN DEFAULT false, p_only_scopes TEXT[] DEFAULT NULL, p_only_sessions TEXT[] DEFAULT NULL,
    p_out_scopes TEXT[] DEFAULT NULL, p_out_sessions TEXT[] DEFAULT NULL, p_now_ms BIGINT DEFAULT NULL,
    p_unsynced BOOLEAN DEFAULT false
) RETURNS TABLE (
    kind TEXT, place INTEGER, token TEXT, item TEXT, attempt INTEGER, instance_id TEXT, orchestration TEXT,
    version TEXT,
    traceparent TEXT, session_scope TEXT, session_id TEXT, epoch BIGINT, claim TEXT, claimed_from TEXT,
    since BIGINT, told INTEGER,
    now_ms BIGINT, again BOOLEAN, next_ms BIGINT, incarnation BIGINT
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
    -- Sessions to step over: each as the length of its scope, the scope and its id.
    v_out TEXT[];
    -- What is runnable: the oldest activities, with their sessions.
    v_ids BIGINT[];
    v_scopes TEXT[];
    v_sessions TEXT[];
    -- Heads that are not ready.
    v_stale_scopes TEXT[];
    v_stale_sessions TEXT[];
    v_stale_tags TEXT[];
BEGIN
    IF p_owner IS NOT NULL AND p_incarnation IS NOT NULL THEN
        v_newest := {schema}.check_incarnation(p_owner, p_incarnation);
        IF v_newest IS NOT NULL THEN
            RETURN QUERY SELECT 'fenced', NULL::integer, NULL::text, NULL::text, NULL::integer, NULL::text,
                NULL::text, NULL::text, NULL::text,
                NULL::text, NULL::text, NULL::bigint, NULL::text, NULL::text, NULL::bigint, 0, v_now, false,
                    NULL::bigint, v_newest;
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
        -- What it has moved may be beneath the floors.
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
        -- Each round steps over what others had in the round before.
        FOR v_round IN 1..5 LOOP
            v_wanted := p_count - v_leased;
            v_page := CASE WHEN v_round <= 3 THEN v_wanted
                ELSE greatest(v_wanted, CASE v_round WHEN 4 THEN 16 ELSE 256 END) END;
            SELECT array_agg(c.id), array_agg(c.scope), array_agg(c.session) INTO v_ids, v_scopes, v_sessions
            FROM {schema}.find_session_work(
                v_page, p_tags, p_owner, p_incarnation, p_claim, p_only_scopes, p_only_sessions, v_out, v_now,
                v_floors.heads, v_round > 3
            ) AS c;
            EXIT WHEN v_ids IS NULL;
            SELECT array_agg(c.id), array_agg(c.scope), array_agg(c.session) INTO v_ids, v_scopes, v_sessions
            FROM (
                SELECT s.id, s.scope, s.session FROM unnest(v_ids, v_scopes, v_sessions) AS s (id, scope,
                    session)
                UNION ALL
                SELECT f.id, NULL, NULL FROM {schema}.find_free_work(v_wanted, p_tags, v_floors.work,
                    v_round > 1) AS f (id)
                ORDER BY id LIMIT v_page
            ) AS c;
            RETURN QUERY SELECT l.*, v_now, NULL::boolean, NULL::bigint, NULL::bigint
            FROM {schema}.lease_session_work(
                v_ids, v_scopes, v_sessions, p_worker_ids[v_leased + 1:], v_leased, v_until, p_owner,
                p_incarnation,
                {schema}.after_ms(v_now, coalesce(p_session_lock_ms, p_lock_ms)), p_claim, v_now, v_wanted
            ) AS l;
            GET DIAGNOSTICS v_found = ROW_COUNT;
            v_leased := v_leased + v_found;
            EXIT WHEN v_found = cardinality(v_ids) OR v_leased = p_count;
            v_again := true;
            -- A head that is not ready would be found again and again. A transaction that saw an old state wrote it, or somebody by hand.
            SELECT array_agg(h.instance_id), array_agg(h.session_id), array_agg(h.tag)
            INTO v_stale_scopes, v_stale_sessions, v_stale_tags
            FROM (SELECT DISTINCT * FROM unnest(v_scopes, v_sessions)) AS c (scope, session)
            CROSS JOIN LATERAL (
                SELECT h.instance_id, h.session_id, h.tag, h.head FROM {schema}.heads AS h
                WHERE h.instance_id = c.scope AND h.session_id = c.session
                OFFSET 0
            ) AS h
            WHERE (SELECT w.state FROM {schema}.worker_queue AS w WHERE w.id = h.head) IS DISTINCT FROM 1;
            IF v_stale_sessions IS NOT NULL THEN
                SELECT array_agg(stale.scope), array_agg(stale.session), array_agg(stale.tag)
                INTO v_stale_scopes, v_stale_sessions, v_stale_tags
                FROM {schema}.hold_lines(v_stale_scopes, v_stale_sessions) AS line
                JOIN unnest(v_stale_scopes, v_stale_sessions, v_stale_tags) AS stale (scope, session, tag)
                    ON stale.scope = line.scope AND stale.session = line.session;
                PERFORM {schema}.refresh_heads(v_stale_scopes, v_stale_sessions, v_stale_tags);
            END IF;
            -- One whose head has moved on since is looked at again.
            v_out := v_out || ARRAY(
                SELECT DISTINCT length(c.scope) || ':' || c.scope || c.session
                FROM unnest(v_ids, v_scopes, v_sessions) AS c (id, scope, session)
                WHERE (
                    SELECT 1 FROM {schema}.heads AS h
                    WHERE h.instance_id = c.scope AND h.session_id = c.session AND h.head <= c.id
                      AND (p_tags IS NULL OR h.tag = ANY (p_tags))
                    LIMIT 1
                ) = 1
            );
        END LOOP;
    END IF;

    IF p_unsynced AND v_leased = 0 THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF v_leased < p_count THEN
        RETURN QUERY SELECT l.*, v_now, NULL::boolean, NULL::bigint, NULL::bigint
        FROM {schema}.lease_free_work(p_count - v_leased, p_tags, p_worker_ids[v_leased + 1:], v_leased,
            v_until, v_floors.work) AS l;
        GET DIAGNOSTICS v_found = ROW_COUNT;
        v_leased := v_leased + v_found;
        IF v_leased < p_count THEN
            -- What is still ready and was not taken is in the hands of another transaction, or has just come.
            v_is_left := EXISTS (SELECT 1 FROM {schema}.find_free_work(1, p_tags, v_floors.work));
            IF v_is_left AND cardinality(p_tags) > 1 THEN
                -- Of several tags only the oldest were looked at.
                RETURN QUERY SELECT l.*, v_now, NULL::boolean, NULL::bigint, NULL::bigint
                FROM {schema}.lease_free_work(
                    p_count - v_leased, p_tags, p_worker_ids[v_leased + 1:], v_leased, v_until, v_floors.work,
                    true
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
        RETURN QUERY SELECT 'none', NULL::integer, NULL::text, NULL::text, NULL::integer, NULL::text,
            NULL::text, NULL::text, NULL::text,
            NULL::text, NULL::text, NULL::bigint, NULL::text, NULL::text, NULL::bigint, 0, v_now, v_again
                OR v_is_left,
            {schema}.next_work_moment(v_now, v_floors.leased_work, v_floors.held_sessions), NULL::bigint;
    END IF;
END
$function$
