-- Queues a message again that was set aside as unreadable, with a delivery count of 0 (S15). Returns false if
-- no such message is set aside.
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
    v_payload TEXT;
BEGIN
    PERFORM {schema}.lock_instances(ARRAY[p_instance]);
    DELETE FROM {schema}.set_aside AS aside WHERE aside.id = p_id AND aside.queue = 0
    RETURNING aside.payload INTO v_payload;
    IF v_payload IS NULL THEN
        RETURN false;
    END IF;
    PERFORM {schema}.queue_messages(
        ARRAY[p_instance], ARRAY[v_payload], ARRAY[v_now], ARRAY[p_starts], ARRAY[NULL]::TEXT[], v_now
    );
    PERFORM {schema}.notify(p_notify, p_me);
    RETURN true;
END
$function$
