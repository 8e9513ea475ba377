-- Queues activities in the order of the arrays: who comes first is served first (S18). An element of p_sessions that is NULL
-- has no session; tags are as they are stored, and NULL is none.
-- Locks: none; the caller has locked the lines of the sessions.
CREATE OR REPLACE FUNCTION {schema}.queue_work(
    p_items TEXT[], p_instances TEXT[], p_executions BIGINT[], p_activities BIGINT[], p_tags TEXT[],
    p_scopes TEXT[], p_sessions TEXT[], p_traceparents TEXT[], p_now BIGINT
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    -- Before ids are drawn: see lower_floor.
    v_transaction CONSTANT XID8 := pg_current_xact_id();
BEGIN
    INSERT INTO {schema}.worker_queue (
        work_item, state, visible_ms, since, created_at, instance_id, execution_id, activity_id, tag,
        session_scope, session_id, traceparent
    )
    SELECT work.item, 1, p_now, p_now, to_timestamp(p_now / 1000.0), work.instance_id, work.execution_id,
        work.activity_id, coalesce(work.tag, ''), CASE WHEN work.session IS NULL THEN '' ELSE work.scope END,
        work.session, work.traceparent
    FROM unnest(
        p_items, p_instances, p_executions, p_activities, p_tags, p_scopes, p_sessions, p_traceparents
    ) WITH ORDINALITY
        AS work (item, instance_id, execution_id, activity_id, tag, scope, session, traceparent, place)
    ORDER BY work.place;

    IF cardinality(array_remove(p_sessions, NULL)) > 0 THEN
        PERFORM {schema}.refresh_heads(p_scopes, p_sessions, array_replace(p_tags, NULL, ''));
    END IF;
END
$function$
