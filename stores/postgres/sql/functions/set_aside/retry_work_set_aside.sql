-- Queues work again that was set aside as unreadable, as it was, with a delivery count of 0 (S15): on its
-- session, with its tag, its trace context, its terms and its tries (S22). The parameters count if the row
-- does not tell. Returns false if no such work is set aside.
-- Locks: the row of its session in `lines`, then the row of `set_aside`.
CREATE OR REPLACE FUNCTION {schema}.retry_work_set_aside(
    p_id BIGINT, p_instance TEXT, p_execution BIGINT, p_activity BIGINT, p_tag TEXT, p_session TEXT,
    p_now_ms BIGINT DEFAULT NULL, p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL
) RETURNS BOOLEAN
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now     BIGINT := {schema}.now_ms(p_now_ms);
    v_aside {schema}.set_aside;
    v_work {schema}.set_aside;
BEGIN
    -- A row is never changed once it is set aside, so it is read before the session is locked.
    SELECT aside.* INTO v_work FROM {schema}.set_aside AS aside WHERE aside.id = p_id AND aside.queue = 1;
    IF v_work.session_scope IS NULL THEN
        v_work.instance_id := p_instance;
        v_work.execution_id := p_execution;
        v_work.activity_id := p_activity;
        v_work.tag := p_tag;
        v_work.session_scope := '';
        v_work.session_id := p_session;
    END IF;
    IF v_work.session_id IS NOT NULL THEN
        PERFORM {schema}.lock_lines(ARRAY[v_work.session_scope], ARRAY[v_work.session_id]);
    END IF;
    DELETE FROM {schema}.set_aside AS aside WHERE aside.id = p_id AND aside.queue = 1
    RETURNING aside.* INTO v_aside;
    IF v_aside.id IS NULL THEN
        RETURN false;
    END IF;
    PERFORM {schema}.queue_work(
        ARRAY[v_aside.payload], ARRAY[v_work.instance_id], ARRAY[v_work.execution_id],
        ARRAY[v_work.activity_id], ARRAY[v_work.tag], ARRAY[v_work.session_scope],
        ARRAY[v_work.session_id], ARRAY[v_work.traceparent], v_now, ARRAY[v_work.call],
        ARRAY[v_work.deliveries], ARRAY[v_work.tries], ARRAY[v_work.last_error],
        ARRAY[v_work.first_fetched]
    );
    PERFORM {schema}.notify(p_notify, p_me);
    RETURN true;
END
$function$
