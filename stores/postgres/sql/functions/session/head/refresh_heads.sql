-- Updates the heads of sessions: for each session and tag the oldest ready work, the oldest without terms
-- (S22), and since when any of the work could have been leased (S18). A serial session has one head, the
-- first work in its line, and only while none of its work is leased; unreadable work is skipped there (S15).
-- Locks: none. The caller has locked the `lines` rows.
CREATE OR REPLACE FUNCTION {schema}.refresh_heads(p_scopes TEXT[], p_sessions TEXT[], p_tags TEXT[])
    RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_oldest BIGINT;
BEGIN
    SELECT array_agg(s.instance_id), array_agg(s.session_id) INTO v_scopes, v_sessions
    FROM (
        SELECT DISTINCT asked.scope, asked.session
        FROM unnest(p_scopes, p_sessions) AS asked (scope, session)
        WHERE asked.session IS NOT NULL
    ) AS line
    CROSS JOIN LATERAL (
        SELECT s.instance_id, s.session_id FROM {schema}.sessions AS s
        WHERE s.instance_id = line.scope AND s.session_id = line.session AND s.serial
        OFFSET 0
    ) AS s;

    WITH first AS (
        SELECT place.scope, place.session, place.tag, oldest.id, bare.id AS bare, longest.since,
            coalesce((
                SELECT ':' || s.worker_id FROM {schema}.sessions AS s
                WHERE s.instance_id = place.scope AND s.session_id = place.session AND s.held
            ), '') AS owner
        FROM (
            SELECT DISTINCT asked.scope, asked.session, asked.tag
            FROM unnest(p_scopes, p_sessions, p_tags) AS asked (scope, session, tag)
            WHERE asked.session IS NOT NULL
              AND (v_sessions IS NULL OR NOT EXISTS (
                  SELECT 1 FROM unnest(v_scopes, v_sessions) AS serial (scope, session)
                  WHERE serial.scope = asked.scope AND serial.session = asked.session
              ))
        ) AS place
        LEFT JOIN LATERAL (
            SELECT w.id FROM {schema}.worker_queue AS w
            WHERE w.session_id = place.session AND w.session_scope = place.scope AND w.state = 1
                AND w.tag = place.tag
            ORDER BY w.id + 0 LIMIT 1
        ) AS oldest ON true
        LEFT JOIN LATERAL (
            SELECT w.id FROM {schema}.worker_queue AS w
            WHERE oldest.id IS NOT NULL
              AND w.session_id = place.session AND w.session_scope = place.scope AND w.state = 1
                  AND w.tag = place.tag AND w.call IS NULL
            ORDER BY 0 + w.id LIMIT 1
        ) AS bare ON true
        LEFT JOIN LATERAL (
            SELECT w.since FROM {schema}.worker_queue AS w
            WHERE oldest.id IS NOT NULL
              AND w.session_id = place.session AND w.session_scope = place.scope AND w.state = 1
                  AND w.tag = place.tag
            ORDER BY w.since LIMIT 1
        ) AS longest ON true
    ), gone AS (
        DELETE FROM {schema}.heads AS h
        WHERE h.ctid = ANY (ARRAY(
            SELECT old.ctid FROM first CROSS JOIN LATERAL (
                SELECT h.ctid FROM {schema}.heads AS h
                WHERE h.instance_id = first.scope AND h.session_id = first.session AND h.tag = first.tag
                OFFSET 0
            ) AS old
            WHERE first.id IS NULL
        ))
    ), changed AS (
        INSERT INTO {schema}.heads AS h (instance_id, session_id, tag, head, owner, since, bare_head)
        SELECT first.scope, first.session, first.tag, first.id, first.owner, first.since, first.bare
        FROM first WHERE first.id IS NOT NULL
        ON CONFLICT (instance_id, session_id, tag) DO UPDATE
        SET head = excluded.head, owner = excluded.owner, since = excluded.since,
            bare_head = excluded.bare_head
        WHERE h.head <> excluded.head OR h.owner <> excluded.owner OR h.since <> excluded.since
          OR h.bare_head IS DISTINCT FROM excluded.bare_head
        RETURNING h.head
    )
    SELECT min(changed.head) INTO v_oldest FROM changed;
    PERFORM {schema}.lower_floor('heads', v_oldest);

    IF v_sessions IS NOT NULL THEN
        PERFORM {schema}.refresh_serial_heads(v_scopes, v_sessions);
    END IF;
END
$function$
