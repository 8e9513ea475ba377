-- Forgets sessions and withdraws their work, queued or running (S12, S13).
-- Locks: the lines, then worker_queue in the order of id.
CREATE OR REPLACE FUNCTION {schema}.close_lines(p_scopes TEXT[], p_sessions TEXT[]) RETURNS VOID
LANGUAGE plpgsql
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET enable_hashjoin TO off
SET enable_mergejoin TO off
SET plan_cache_mode TO force_generic_plan
AS $function$
#variable_conflict use_column
BEGIN
    PERFORM {schema}.lock_lines(p_scopes, p_sessions);
    DELETE FROM {schema}.worker_queue AS w
    WHERE w.id IN (
        SELECT gone.id
        FROM unnest(p_scopes, p_sessions) AS line (scope, session)
        JOIN {schema}.worker_queue AS gone ON gone.session_id = line.session AND gone.session_scope = line.scope
        ORDER BY gone.id
        FOR UPDATE OF gone
    );
    DELETE FROM {schema}.heads AS h USING unnest(p_scopes, p_sessions) AS line (scope, session)
    WHERE h.instance_id = line.scope AND h.session_id = line.session;
    DELETE FROM {schema}.sessions AS s USING unnest(p_scopes, p_sessions) AS line (scope, session)
    WHERE s.instance_id = line.scope AND s.session_id = line.session;
    DELETE FROM {schema}.lines AS l USING unnest(p_scopes, p_sessions) AS line (scope, session)
    WHERE l.instance_id = line.scope AND l.session_id = line.session;
END
$function$
