-- Leases work that find_session_work and find_free_work found. Work of a session is leased under the claim
-- that the owner has or makes now (S13). Everything is judged again under the locks, because other fetches
-- run at the same time; rows that other transactions have locked are skipped. The places in the result are
-- counted from p_before. p_limit: the most leases; then more sessions are locked than are served. `told` is,
-- in the first row, the number of messages that were sent to watchers.
-- Locks: `instance_locks` of watchers, `lines`, `sessions`, `worker_queue`, in this order, each in the order
-- of its keys, all skipping locked rows; then those of replace_closed, which waits for none.
CREATE OR REPLACE FUNCTION {schema}.lease_session_work(
    p_ids BIGINT[], p_scopes TEXT[], p_sessions TEXT[], p_worker_ids TEXT[], p_before INTEGER, p_until BIGINT,
    p_owner TEXT, p_incarnation BIGINT, p_session_until BIGINT, p_claim BOOLEAN, p_now BIGINT,
    p_limit INTEGER DEFAULT NULL
) RETURNS TABLE (
    kind TEXT, place INTEGER, token TEXT, item TEXT, attempt INTEGER, instance_id TEXT, orchestration TEXT,
    version TEXT,
    traceparent TEXT, session_scope TEXT, session_id TEXT, epoch BIGINT, claim TEXT, claimed_from TEXT,
    since BIGINT, told INTEGER, delivery INTEGER, call TEXT, tries INTEGER, last_error TEXT,
    first_fetched BIGINT
)
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    -- The instances of watchers that were locked.
    v_told TEXT[] := '{}';
    -- The sessions whose `lines` row was locked, and whose `sessions` row too if there is one.
    v_scopes TEXT[];
    v_sessions TEXT[];
    -- Work that may be leased, and then the work that was locked.
    v_ids BIGINT[];
    v_taken BIGINT[];
    -- The sessions of the locked work, with epoch, kind of claim and previous owner.
    v_of_scopes TEXT[];
    v_of_sessions TEXT[];
    v_of_epochs BIGINT[];
    v_of_claims TEXT[];
    v_of_from TEXT[];
    v_tags TEXT[];
    -- Whether a session is claimed that was closed and opened again, and whose former owner is waited for.
    v_is_reopened BOOLEAN;
    v_messages INTEGER := 0;
BEGIN
    IF EXISTS (
        SELECT 1 FROM unnest(p_scopes, p_sessions) AS c (scope, session)
        CROSS JOIN LATERAL (
            SELECT 1 FROM {schema}.watchers AS w
            WHERE w.session_scope = c.scope AND w.session_id = c.session AND w.has_seen
            LIMIT 1
        ) AS w
    ) THEN
        v_told := {schema}.hold_watchers(p_scopes, p_sessions);
    END IF;
    SELECT array_agg(line.scope), array_agg(line.session) INTO v_scopes, v_sessions
    FROM {schema}.hold_lines(p_scopes, p_sessions) AS line
    LEFT JOIN LATERAL (
        SELECT 1 AS locked FROM {schema}.sessions AS s
        WHERE s.instance_id = line.scope AND s.session_id = line.session
        FOR UPDATE SKIP LOCKED
    ) AS s ON true
    -- A session without a row cannot get one while its `lines` row is locked.
    WHERE s.locked = 1 OR (
        SELECT 1 FROM {schema}.sessions AS s WHERE s.instance_id = line.scope AND s.session_id = line.session
    ) IS NULL;

    v_ids := ARRAY(
        SELECT c.id
        FROM unnest(p_ids, p_scopes, p_sessions) AS c (id, scope, session)
        LEFT JOIN unnest(v_scopes, v_sessions) AS locked (scope, session)
            ON locked.scope = c.scope AND locked.session = c.session
        LEFT JOIN {schema}.sessions AS s ON s.instance_id = locked.scope AND s.session_id = locked.session
        WHERE c.session IS NULL
          OR (locked.session IS NOT NULL
              AND CASE
                  -- This owner holds the session.
                  WHEN s.held AND s.locked_until > p_now AND s.worker_id = p_owner
                      AND s.closed_epoch IS NULL
                      AND (p_incarnation IS NULL OR s.incarnation IS NOT DISTINCT FROM p_incarnation)
                          THEN true
                  -- The session can be claimed: it has no live owner, or an older incarnation of this node
                  -- owns it, and all watchers are locked. An incarnation that is not the newest any more
                  -- claims nothing.
                  ELSE p_claim
                      AND NOT coalesce(
                          s.held AND s.locked_until > p_now
                              AND (s.worker_id <> p_owner OR s.incarnation > p_incarnation), false
                      )
                      AND (SELECT 1 FROM {schema}.nodes AS n WHERE n.node_id = p_owner
                          AND n.incarnation > p_incarnation) IS NULL
                      AND (
                          SELECT 1 FROM {schema}.watchers AS w
                          WHERE w.session_scope = c.scope AND w.session_id = c.session AND w.has_seen
                            AND w.instance_id <> ALL (v_told)
                          LIMIT 1
                      ) IS NULL
              END
              AND (s.serial IS NOT TRUE OR (
                  SELECT 1 FROM {schema}.heads AS h
                  WHERE h.instance_id = c.scope AND h.session_id = c.session AND h.head = c.id
              ) = 1))
    );
    v_taken := ARRAY(
        SELECT w.id
        FROM (SELECT found.id FROM unnest(v_ids) AS found (id) ORDER BY 1) AS found
        CROSS JOIN LATERAL (
            SELECT w.id FROM {schema}.worker_queue AS w
            WHERE w.id = found.id AND w.state + 0 = 1
            FOR UPDATE SKIP LOCKED
        ) AS w
        LIMIT p_limit
    );
    IF cardinality(v_taken) = 0 THEN
        RETURN;
    END IF;

    SELECT array_agg(taken.scope), array_agg(taken.session),
        array_agg(CASE WHEN taken.is_held THEN taken.epoch ELSE nextval('{schema}.numbers') END),
        array_agg(CASE WHEN taken.is_held THEN 'held' WHEN taken.was IS NULL THEN 'new' ELSE 'taken' END),
        array_agg(CASE WHEN NOT taken.is_held THEN taken.was END), bool_or(taken.closed_epoch IS NOT NULL)
    INTO v_of_scopes, v_of_sessions, v_of_epochs, v_of_claims, v_of_from, v_is_reopened
    FROM (
        SELECT c.scope, c.session, s.epoch, s.closed_epoch,
            CASE WHEN s.closed_epoch IS NULL THEN nullif(s.worker_id, '') END AS was,
            coalesce(s.held AND s.locked_until > p_now AND s.worker_id = p_owner AND s.closed_epoch IS NULL
                AND (p_incarnation IS NULL OR s.incarnation IS NOT DISTINCT FROM p_incarnation),
                    false) AS is_held
        FROM (
            SELECT c.scope, c.session, min(c.id) AS first
            FROM unnest(p_ids, p_scopes, p_sessions) AS c (id, scope, session)
            WHERE c.session IS NOT NULL AND c.id = ANY (v_taken)
            GROUP BY c.scope, c.session
        ) AS c
        LEFT JOIN {schema}.sessions AS s ON s.instance_id = c.scope AND s.session_id = c.session
        ORDER BY c.first
    ) AS taken;
    IF v_of_sessions IS NOT NULL THEN
        IF 'taken' = ANY (v_of_claims) THEN
            PERFORM {schema}.note_ends(array_agg(o.scope), array_agg(o.session), 'lost', p_now)
            FROM unnest(v_of_scopes, v_of_sessions, v_of_claims) AS o (scope, session, claim)
            WHERE o.claim = 'taken';
        END IF;
        IF 'held' <> ANY (v_of_claims) THEN
            PERFORM {schema}.note_claims(array_agg(o.scope), array_agg(o.session), array_agg(o.epoch),
                p_owner, p_incarnation, p_now)
            FROM unnest(v_of_scopes, v_of_sessions, v_of_epochs, v_of_claims)
                AS o (scope, session, epoch, claim)
            WHERE o.claim <> 'held';
        END IF;
        IF v_is_reopened THEN
            PERFORM {schema}.replace_closed(v_of_scopes, v_of_sessions, v_of_epochs, p_now);
        END IF;
        INSERT INTO {schema}.sessions AS s
            (instance_id, session_id, worker_id, incarnation, held, locked_until, last_activity_at, epoch)
        SELECT o.scope, o.session, p_owner, p_incarnation, true, p_session_until, p_now, o.epoch
        FROM unnest(v_of_scopes, v_of_sessions, v_of_epochs) AS o (scope, session, epoch)
        ON CONFLICT (instance_id, session_id) DO UPDATE
        SET worker_id = excluded.worker_id,
            incarnation = CASE WHEN s.epoch = excluded.epoch THEN s.incarnation ELSE excluded.incarnation END,
            held = true,
            locked_until = CASE WHEN s.epoch = excluded.epoch THEN greatest(s.locked_until,
                excluded.locked_until)
                ELSE excluded.locked_until END,
            last_activity_at = excluded.last_activity_at,
            epoch = excluded.epoch,
            closed_epoch = NULL;
        PERFORM {schema}.own_heads(array_agg(o.scope), array_agg(o.session), ':' || p_owner)
        FROM unnest(v_of_scopes, v_of_sessions, v_of_claims) AS o (scope, session, claim)
        WHERE o.claim <> 'held'
        HAVING count(*) > 0;
        SELECT {schema}.tell_watchers(
            array_agg(o.scope), array_agg(o.session), array_agg(o.epoch), array_agg(o.claimed_from), p_owner,
            p_now
        )
        INTO v_messages
        FROM unnest(v_of_scopes, v_of_sessions, v_of_epochs, v_of_claims, v_of_from)
            AS o (scope, session, epoch, claim, claimed_from)
        WHERE o.claim <> 'held' AND (
            SELECT 1 FROM {schema}.watchers AS w
            WHERE w.session_scope = o.scope AND w.session_id = o.session
            LIMIT 1
        ) = 1
        HAVING count(*) > 0;
    END IF;

    RETURN QUERY
    WITH taken AS (
        SELECT t.id, t.place, o.epoch, o.claimed_from,
            CASE WHEN row_number() OVER (PARTITION BY c.scope, c.session ORDER BY t.place) = 1 THEN o.claim
                ELSE 'held' END AS claim
        FROM unnest(v_taken) WITH ORDINALITY AS t (id, place)
        JOIN unnest(p_ids, p_scopes, p_sessions) AS c (id, scope, session) ON c.id = t.id
        LEFT JOIN unnest(v_of_scopes, v_of_sessions, v_of_epochs, v_of_claims, v_of_from)
            AS o (scope, session, epoch, claim, claimed_from) ON o.scope = c.scope AND o.session = c.session
    ), leased AS (
        UPDATE {schema}.worker_queue AS w
        SET state = 2, lock_token = 'lock_' || gen_random_uuid(), locked_until = p_until,
            worker_id = p_worker_ids[taken.place], epoch = taken.epoch, attempt_count = w.attempt_count + 1,
            refused = false, deliveries = least(w.deliveries, 2147483646) + 1,
            first_fetched = coalesce(w.first_fetched, p_now)
        FROM taken
        WHERE w.id = taken.id
        RETURNING w.*, taken.place, taken.claim, taken.claimed_from
    )
    SELECT 'lease', p_before + leased.place::integer, leased.lock_token, leased.work_item,
        leased.attempt_count, leased.instance_id,
        i.orchestration_name, i.orchestration_version, leased.traceparent,
        CASE WHEN leased.session_id IS NOT NULL THEN leased.session_scope END, leased.session_id,
            leased.epoch,
        CASE WHEN leased.session_id IS NOT NULL THEN leased.claim END,
        CASE WHEN leased.claim = 'taken' THEN leased.claimed_from END, leased.since,
        CASE WHEN leased.place = 1 THEN coalesce(v_messages, 0) ELSE 0 END, leased.deliveries, leased.call,
        leased.tries, leased.last_error, leased.first_fetched
    FROM leased LEFT JOIN {schema}.instances AS i ON i.instance_id = leased.instance_id
    ORDER BY leased.place;

    IF v_of_sessions IS NOT NULL THEN
        SELECT array_agg(w.session_scope), array_agg(w.session_id), array_agg(w.tag) INTO v_scopes,
            v_sessions, v_tags
        FROM {schema}.worker_queue AS w
        WHERE w.id = ANY (v_taken);
        PERFORM {schema}.refresh_heads(v_scopes, v_sessions, v_tags);
    END IF;
END
$function$
