-- Sends SessionMigrated to the executions that watch newly claimed sessions (S13). An execution is told from
-- the second claim on that it sees. Returns the number of messages.
-- Locks: the rows of `watchers` that it updates. The caller has locked the instances of the watchers and the
-- `lines` rows.
CREATE OR REPLACE FUNCTION {schema}.tell_watchers(
    p_scopes TEXT[], p_sessions TEXT[], p_epochs BIGINT[], p_from TEXT[], p_to TEXT, p_now BIGINT
) RETURNS INTEGER
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_instances TEXT[];
    v_items TEXT[];
BEGIN
    SELECT array_agg(told.instance_id), array_agg(told.item) INTO v_instances, v_items
    FROM (
        SELECT w.instance_id,
            '{"SessionMigrated":{"instance":' || {schema}.json_text(w.instance_id)
            || ',"execution_id":' || w.execution_id
            || ',"session_id":' || {schema}.json_text(w.session_id)
            || ',"epoch":' || claim.epoch
            || coalesce(',"from":' || {schema}.json_text(claim.was), '')
            || ',"to":' || {schema}.json_text(p_to) || '}}' AS item
        FROM unnest(p_scopes, p_sessions, p_epochs, p_from) AS claim (scope, session, epoch, was)
        CROSS JOIN LATERAL (
            SELECT * FROM {schema}.watchers AS w
            WHERE w.session_scope = claim.scope AND w.session_id = claim.session AND w.has_seen
            OFFSET 0
        ) AS w
        ORDER BY claim.epoch, w.instance_id, w.execution_id
    ) AS told;
    IF v_instances IS NOT NULL THEN
        PERFORM {schema}.queue_messages(
            v_instances, v_items, NULL,
            array_fill(false, ARRAY[cardinality(v_instances)]),
            array_fill(NULL::text, ARRAY[cardinality(v_instances)]), p_now
        );
    END IF;
    UPDATE {schema}.watchers AS w SET has_seen = true
    FROM unnest(p_scopes, p_sessions) AS claim (scope, session)
    WHERE w.session_scope = claim.scope AND w.session_id = claim.session AND NOT w.has_seen;
    RETURN coalesce(cardinality(v_instances), 0);
END
$function$
