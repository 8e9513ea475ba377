-- Moves the last activity of sessions for those who still have the attachment that they had (S13).
-- Locks: sessions in the order of keys.
CREATE OR REPLACE FUNCTION {schema}.touch_sessions(
    p_scopes TEXT[], p_sessions TEXT[], p_epochs BIGINT[], p_now BIGINT
) RETURNS VOID
LANGUAGE plpgsql
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET enable_hashjoin TO off
SET enable_mergejoin TO off
SET plan_cache_mode TO force_generic_plan
AS $function$
#variable_conflict use_column
BEGIN
    WITH live AS (
        SELECT s.instance_id, s.session_id
        FROM (SELECT DISTINCT * FROM unnest(p_scopes, p_sessions, p_epochs)) AS held (scope, session, epoch)
        JOIN {schema}.sessions AS s ON s.instance_id = held.scope AND s.session_id = held.session
        WHERE s.epoch = held.epoch AND s.held AND s.locked_until > p_now AND s.last_activity_at <> p_now
        ORDER BY s.instance_id, s.session_id
        FOR UPDATE OF s
    )
    UPDATE {schema}.sessions AS s SET last_activity_at = p_now
    FROM live WHERE s.instance_id = live.instance_id AND s.session_id = live.session_id;
END
$function$
