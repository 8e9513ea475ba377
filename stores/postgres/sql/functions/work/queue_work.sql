-- Queues work in the order of the arrays, which is the order in which it is served (S18). An element of
-- p_sessions that is NULL has no session. Tags are given as they are stored: '' for no tag, else ':' followed
-- by the tag; NULL counts as ''. p_calls: the terms of the calls (S22). The arrays after them are of work
-- that was queued before: how often it was leased, its tries, and when it was first leased.
-- Locks: none. The caller has locked the `lines` rows of the sessions.
CREATE OR REPLACE FUNCTION {schema}.queue_work(
    p_items TEXT[], p_instances TEXT[], p_executions BIGINT[], p_activities BIGINT[], p_tags TEXT[],
    p_scopes TEXT[], p_sessions TEXT[], p_traceparents TEXT[], p_now BIGINT,
    p_calls TEXT[] DEFAULT NULL, p_deliveries INTEGER[] DEFAULT NULL, p_tries INTEGER[] DEFAULT NULL,
    p_last_errors TEXT[] DEFAULT NULL, p_first_fetched BIGINT[] DEFAULT NULL
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    -- Take a transaction id before ids are drawn, as lower_floor requires.
    v_transaction CONSTANT XID8 := pg_current_xact_id();
BEGIN
    INSERT INTO {schema}.worker_queue (
        work_item, state, visible_ms, since, created_at, instance_id, execution_id, activity_id, tag,
        session_scope, session_id, traceparent, call, deliveries, tries, last_error, first_fetched
    )
    SELECT work.item, 1, p_now, p_now, to_timestamp(p_now / 1000.0), work.instance_id, work.execution_id,
        work.activity_id, coalesce(work.tag, ''), CASE WHEN work.session IS NULL THEN '' ELSE work.scope END,
        work.session, work.traceparent, work.call, coalesce(work.deliveries, 0), coalesce(work.tries, 0),
        work.last_error, work.first_fetched
    FROM unnest(
        p_items, p_instances, p_executions, p_activities, p_tags, p_scopes, p_sessions, p_traceparents,
        p_calls, p_deliveries, p_tries, p_last_errors, p_first_fetched
    ) WITH ORDINALITY
        AS work (item, instance_id, execution_id, activity_id, tag, scope, session, traceparent, call,
            deliveries, tries, last_error, first_fetched, place)
    ORDER BY work.place;

    IF cardinality(array_remove(p_sessions, NULL)) > 0 THEN
        PERFORM {schema}.refresh_heads(p_scopes, p_sessions, array_replace(p_tags, NULL, ''));
    END IF;
END
$function$
