-- Compatible function: queues work that no turn asked for. With p_session_id it belongs to that shared
-- session (S13). If p_tag is NULL, the tag is read from the work item.
-- Locks: the row of the session in `lines`, if there is a session.
CREATE OR REPLACE FUNCTION {schema}.enqueue_worker_work(
    p_work_item TEXT, p_now_ms BIGINT, p_instance_id TEXT DEFAULT NULL, p_execution_id BIGINT DEFAULT NULL,
    p_activity_id BIGINT DEFAULT NULL, p_session_id TEXT DEFAULT NULL,
    p_tag TEXT DEFAULT NULL, p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL
) RETURNS VOID
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_tag TEXT := coalesce(p_tag, {schema}.item_of(p_work_item)->'ActivityExecute'->>'tag');
BEGIN
    PERFORM {schema}.lock_lines(ARRAY[''], ARRAY[p_session_id]);
    PERFORM {schema}.queue_work(
        ARRAY[p_work_item], ARRAY[p_instance_id], ARRAY[p_execution_id], ARRAY[p_activity_id],
        ARRAY[coalesce(':' || v_tag, '')], ARRAY[''], ARRAY[p_session_id], ARRAY[NULL]::TEXT[],
        {schema}.now_ms(p_now_ms)
    );
    PERFORM {schema}.notify(coalesce(p_notify, {schema}.everything()), p_me);
END
$function$
