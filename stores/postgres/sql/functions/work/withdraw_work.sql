-- Deletes work, queued or leased. The holder of a lease learns it from its next renewal or finish (S12). Work
-- that does not exist is no error.
-- Locks: `lines` of the sessions in the order of their keys, then `worker_queue` in the order of id.
CREATE OR REPLACE FUNCTION {schema}.withdraw_work(
    p_instances TEXT[], p_executions BIGINT[], p_activities BIGINT[], p_now BIGINT
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_ids BIGINT[];
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_tags TEXT[];
BEGIN
    SELECT array_agg(w.id),
        array_agg(w.session_scope) FILTER (WHERE w.session_id IS NOT NULL),
        array_agg(w.session_id) FILTER (WHERE w.session_id IS NOT NULL),
        array_agg(w.tag) FILTER (WHERE w.session_id IS NOT NULL)
    INTO v_ids, v_scopes, v_sessions, v_tags
    FROM unnest(p_instances, p_executions, p_activities) AS gone (instance_id, execution_id, activity_id)
    CROSS JOIN LATERAL (
        SELECT w.id, w.session_scope, w.session_id, w.tag FROM {schema}.worker_queue AS w
        WHERE w.instance_id = gone.instance_id AND w.execution_id = gone.execution_id
          AND w.activity_id = gone.activity_id
        OFFSET 0
    ) AS w;
    IF v_ids IS NULL THEN
        RETURN;
    END IF;
    IF v_sessions IS NOT NULL THEN
        PERFORM {schema}.lock_lines(v_scopes, v_sessions);
    END IF;
    PERFORM {schema}.lock_work(v_ids);
    PERFORM {schema}.drop_work(v_ids, p_now);
    IF v_sessions IS NOT NULL THEN
        PERFORM {schema}.refresh_heads(v_scopes, v_sessions, v_tags);
    END IF;
END
$function$
