-- Locks the lines of sessions as far as nobody else has them, and returns those; a fetch waits for nobody.
-- Locks: lines in the order of their keys, skipping what others have locked.
CREATE OR REPLACE FUNCTION {schema}.hold_lines(p_scopes TEXT[], p_sessions TEXT[])
RETURNS TABLE (scope TEXT, session TEXT)
LANGUAGE plpgsql
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET enable_hashjoin TO off
SET enable_mergejoin TO off
SET plan_cache_mode TO force_generic_plan
SET jit TO off
AS $function$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT locked.instance_id, locked.session_id
    FROM (
        SELECT DISTINCT line.scope COLLATE "C" AS scope, line.session COLLATE "C" AS session
        FROM unnest(p_scopes, p_sessions) AS line (scope, session)
        ORDER BY 1, 2
    ) AS wanted
    CROSS JOIN LATERAL (
        SELECT l.instance_id, l.session_id FROM {schema}.lines AS l
        WHERE l.instance_id = wanted.scope AND l.session_id = wanted.session
        FOR UPDATE SKIP LOCKED
    ) AS locked;
END
$function$
