-- Locks the lines of sessions as far as nobody else has them, and returns those; a fetch waits for nobody. A line that is missing
-- is made, for the next who asks.
-- Locks: lines in the order of their keys, skipping what others have locked.
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
        -- A session that somebody put in by hand has no line, and would be looked for again and again.
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
