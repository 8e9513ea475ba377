-- Locks the `lines` rows of sessions, so that no other transaction changes their owner or their heads (S13).
-- Elements without a session are ignored.
-- Locks: `lines` in the order of their keys. Missing rows are inserted, and all rows are locked again. If
-- other transactions keep deleting rows in between, it raises serialization_failure after 100 rounds.
CREATE OR REPLACE FUNCTION {schema}.lock_lines(p_scopes TEXT[], p_sessions TEXT[]) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_locked INTEGER;
BEGIN
    SELECT array_agg(wanted.scope), array_agg(wanted.session) INTO v_scopes, v_sessions
    FROM (
        SELECT DISTINCT line.scope COLLATE "C" AS scope, line.session COLLATE "C" AS session
        FROM unnest(p_scopes, p_sessions) AS line (scope, session)
        WHERE line.session IS NOT NULL
        ORDER BY 1, 2
    ) AS wanted;
    IF v_sessions IS NULL THEN
        RETURN;
    END IF;
    FOR v_try IN 1..100 LOOP
        SELECT count(*) INTO v_locked
        FROM unnest(v_scopes, v_sessions) AS wanted (scope, session)
        CROSS JOIN LATERAL (
            SELECT 1 FROM {schema}.lines AS l
            WHERE l.instance_id = wanted.scope AND l.session_id = wanted.session
            FOR UPDATE
        ) AS locked;
        IF v_locked = cardinality(v_sessions) THEN
            RETURN;
        END IF;
        INSERT INTO {schema}.lines (instance_id, session_id)
        SELECT wanted.scope, wanted.session
        FROM unnest(v_scopes, v_sessions) AS wanted (scope, session)
        ON CONFLICT DO NOTHING;
    END LOOP;
    RAISE EXCEPTION 'sessions are removed as fast as they are named' USING ERRCODE = 'serialization_failure';
END
$function$
