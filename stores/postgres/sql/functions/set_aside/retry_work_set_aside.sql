-- Queues work again that was set aside as unreadable, with a delivery count of 0 (S15). Returns false if no
-- such work is set aside.
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
    v_payload TEXT;
BEGIN
    IF p_session IS NOT NULL THEN
        PERFORM {schema}.lock_lines(ARRAY[''], ARRAY[p_session]);
    END IF;
    DELETE FROM {schema}.set_aside AS aside WHERE aside.id = p_id AND aside.queue = 1
    RETURNING aside.payload INTO v_payload;
    IF v_payload IS NULL THEN
        RETURN false;
    END IF;
    PERFORM {schema}.queue_work(
        ARRAY[v_payload], ARRAY[p_instance], ARRAY[p_execution], ARRAY[p_activity], ARRAY[p_tag], ARRAY[''],
        ARRAY[p_session], ARRAY[NULL]::TEXT[], v_now
    );
    PERFORM {schema}.notify(p_notify, p_me);
    RETURN true;
END
$function$
