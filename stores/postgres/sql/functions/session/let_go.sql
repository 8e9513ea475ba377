-- Ends attachments of sessions that are still the given ones: their work is anybody's (S13). The owner stays written, as the
-- last one that the session had. Returns the places of those that were live.
-- Locks: sessions in the order of keys; the caller has locked the lines.
CREATE OR REPLACE FUNCTION {schema}.let_go(p_scopes TEXT[], p_sessions TEXT[], p_epochs BIGINT[], p_now BIGINT)
RETURNS BIGINT[]
LANGUAGE plpgsql
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET enable_hashjoin TO off
SET enable_mergejoin TO off
SET plan_cache_mode TO force_generic_plan
AS $function$
#variable_conflict use_column
DECLARE
    v_places BIGINT[];
BEGIN
    WITH live AS (
        SELECT s.instance_id, s.session_id, asked.place
        FROM unnest(p_scopes, p_sessions, p_epochs) WITH ORDINALITY AS asked (scope, session, epoch, place)
        JOIN {schema}.sessions AS s ON s.instance_id = asked.scope AND s.session_id = asked.session
        WHERE s.epoch = asked.epoch AND s.held AND s.locked_until > p_now
        ORDER BY s.instance_id, s.session_id, asked.place
        FOR UPDATE OF s
    ), ended AS (
        UPDATE {schema}.sessions AS s SET held = false, locked_until = p_now
        FROM (SELECT DISTINCT instance_id, session_id FROM live) AS live
        WHERE s.instance_id = live.instance_id AND s.session_id = live.session_id
        RETURNING s.instance_id, s.session_id
    ), freed AS (
        UPDATE {schema}.heads AS h SET owner = ''
        FROM ended WHERE h.instance_id = ended.instance_id AND h.session_id = ended.session_id
    )
    SELECT array_agg(first.place ORDER BY first.place) INTO v_places
    FROM (SELECT min(live.place) AS place FROM live GROUP BY live.instance_id, live.session_id) AS first;
    RETURN coalesce(v_places, '{}');
END
$function$
