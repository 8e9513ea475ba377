-- Queues one piece of work that no turn asked for. p_call: the terms of its call (S22).
-- Locks: the row of its session in `lines`, if it has a session.
CREATE OR REPLACE FUNCTION {schema}.enqueue_work(
    p_item TEXT, p_instance TEXT, p_execution BIGINT, p_activity BIGINT, p_tag TEXT, p_scope TEXT,
    p_session TEXT,
    p_traceparent TEXT, p_now_ms BIGINT DEFAULT NULL, p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL,
    p_call TEXT DEFAULT NULL
) RETURNS VOID
LANGUAGE plpgsql
{planner}
AS $function$
BEGIN
    IF p_session IS NOT NULL THEN
        PERFORM {schema}.lock_lines(ARRAY[coalesce(p_scope, '')], ARRAY[p_session]);
    END IF;
    PERFORM {schema}.queue_work(
        ARRAY[p_item], ARRAY[p_instance], ARRAY[p_execution], ARRAY[p_activity], ARRAY[p_tag],
        ARRAY[coalesce(p_scope, '')], ARRAY[p_session], ARRAY[p_traceparent], {schema}.now_ms(p_now_ms),
        ARRAY[p_call]
    );
    PERFORM {schema}.notify(p_notify, p_me);
END
$function$
