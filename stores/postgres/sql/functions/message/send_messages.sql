-- Sends messages to instances, all or none, in the order of the arrays (S7, S9, S17). A delay of NULL means
-- at once. p_failures: see queue_messages.
-- Locks: `instance_locks` in the order of instance_id.
CREATE OR REPLACE FUNCTION {schema}.send_messages(
    p_instances TEXT[], p_items TEXT[], p_delay_ms BIGINT[], p_starts BOOLEAN[], p_traceparents TEXT[],
    p_now_ms BIGINT,
    p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL, p_failures TEXT[] DEFAULT NULL
) RETURNS VOID
LANGUAGE plpgsql
{patient}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
BEGIN
    IF p_me IS NOT NULL THEN
        -- A process of the store repeats the call. In a transaction of an application, which cannot be
        -- repeated, its own limit counts.
        PERFORM set_config('lock_timeout', '500ms', true);
    END IF;
    PERFORM {schema}.lock_instances(p_instances);
    PERFORM {schema}.queue_messages(
        p_instances, p_items, {schema}.after_each_ms(v_now, p_delay_ms), p_starts, p_traceparents, v_now,
        p_failures => p_failures
    );
    PERFORM {schema}.notify(p_notify, p_me);
END
$function$
