-- Queues a message again that was set aside as unreadable, as it was, with a delivery count of 0 (S15): a
-- start as a start, in its place in a batch, with its trace context, its failure and the call of the parent
-- that it belongs to. p_starts: whether it is a start if the row does not tell. Returns false if no such
-- message is set aside.
-- Locks: `instance_locks` of p_instance, then the row of `set_aside`.
CREATE OR REPLACE FUNCTION {schema}.retry_message_set_aside(
    p_id BIGINT, p_instance TEXT, p_starts BOOLEAN,
    p_now_ms BIGINT DEFAULT NULL, p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL
) RETURNS BOOLEAN
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now     BIGINT := {schema}.now_ms(p_now_ms);
    v_aside {schema}.set_aside;
BEGIN
    PERFORM {schema}.lock_instances(ARRAY[p_instance]);
    DELETE FROM {schema}.set_aside AS aside WHERE aside.id = p_id AND aside.queue = 0
    RETURNING aside.* INTO v_aside;
    IF v_aside.id IS NULL THEN
        RETURN false;
    END IF;
    PERFORM {schema}.queue_messages(
        ARRAY[p_instance], ARRAY[v_aside.payload], NULL, ARRAY[coalesce(v_aside.starts, p_starts)],
        ARRAY[v_aside.traceparent], v_now, ARRAY[v_aside.parent_instance_id], ARRAY[v_aside.parent_life],
        ARRAY[v_aside.parent_execution_id], ARRAY[v_aside.parent_event_id], ARRAY[v_aside.due_ms],
        ARRAY[v_aside.failure]
    );
    PERFORM {schema}.notify(p_notify, p_me);
    RETURN true;
END
$function$
