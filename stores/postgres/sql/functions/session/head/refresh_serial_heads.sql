-- Updates the heads of serial sessions. The head is the first work in line, if it is ready and no work of the
-- session is leased. Unreadable work is skipped until its next try (S15).
-- Locks: none. The caller has locked the `lines` rows.
CREATE OR REPLACE FUNCTION {schema}.refresh_serial_heads(p_scopes TEXT[], p_sessions TEXT[]) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_oldest BIGINT;
BEGIN
    DELETE FROM {schema}.heads AS h
    WHERE h.ctid = ANY (ARRAY(
        SELECT old.ctid FROM unnest(p_scopes, p_sessions) AS line (scope, session)
        CROSS JOIN LATERAL (
            SELECT h.ctid FROM {schema}.heads AS h
            WHERE h.instance_id = line.scope AND h.session_id = line.session
            OFFSET 0
        ) AS old
    ));

    WITH made AS (
        INSERT INTO {schema}.heads (instance_id, session_id, tag, head, owner, since, bare_head)
        SELECT line.scope, line.session, first.tag, first.id,
            coalesce((
                SELECT ':' || s.worker_id FROM {schema}.sessions AS s
                WHERE s.instance_id = line.scope AND s.session_id = line.session AND s.held
            ), ''),
            first.since, CASE WHEN first.is_bare THEN first.id END
        FROM unnest(p_scopes, p_sessions) AS line (scope, session)
        CROSS JOIN LATERAL (
            SELECT w.id, w.state, w.tag, w.since, w.call IS NULL AS is_bare FROM {schema}.worker_queue AS w
            WHERE w.session_id = line.session AND w.session_scope = line.scope AND NOT w.unreadable
            ORDER BY w.id - 0 LIMIT 1
        ) AS first
        WHERE first.state = 1
          AND (
              SELECT 1 FROM {schema}.worker_queue AS w
              WHERE w.session_id = line.session AND w.session_scope = line.scope AND w.state = 2
              LIMIT 1
          ) IS NULL
        RETURNING head
    )
    SELECT min(made.head) INTO v_oldest FROM made;
    PERFORM {schema}.lower_floor('heads', v_oldest);
END
$function$
