-- Locks the `lines` rows of sessions without waiting, and returns the sessions that it locked. A missing row
-- is inserted, so that the next caller can lock it.
-- Locks: `lines` in the order of their keys, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.hold_lines(p_scopes TEXT[], p_sessions TEXT[])
RETURNS TABLE (scope TEXT, session TEXT)
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
    RETURN QUERY
    SELECT locked.instance_id, locked.session_id
    FROM unnest(v_scopes, v_sessions) AS wanted (scope, session)
    CROSS JOIN LATERAL (
        SELECT l.instance_id, l.session_id FROM {schema}.lines AS l
        WHERE l.instance_id = wanted.scope AND l.session_id = wanted.session
        FOR UPDATE SKIP LOCKED
    ) AS locked;
    GET DIAGNOSTICS v_locked = ROW_COUNT;
    IF v_locked < cardinality(v_sessions) THEN
        -- A session that was inserted by hand has no row in `lines`; without one it would never be locked.
        INSERT INTO {schema}.lines (instance_id, session_id)
        SELECT wanted.scope, wanted.session FROM unnest(v_scopes, v_sessions) AS wanted (scope, session)
        WHERE (
            SELECT 1 FROM {schema}.lines AS l WHERE l.instance_id = wanted.scope
                AND l.session_id = wanted.session
        ) IS NULL
        ON CONFLICT DO NOTHING;
    END IF;
END
$function$
