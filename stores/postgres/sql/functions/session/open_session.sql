-- Opens a session of an instance; the options of one that is open already stay as they are (S13).
-- Locks: its line; of a serial one also what runs of it, in worker_queue in the order of id.
CREATE OR REPLACE FUNCTION {schema}.open_session(
    p_instance TEXT, p_session TEXT, p_idle_ms BIGINT, p_serial BOOLEAN, p_now BIGINT
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    PERFORM {schema}.lock_lines(ARRAY[p_instance], ARRAY[p_session]);
    INSERT INTO {schema}.sessions
        (instance_id, session_id, worker_id, held, locked_until, last_activity_at, epoch, idle_timeout,
            serial)
    VALUES (p_instance, p_session, '', false, 0, p_now, 0, p_idle_ms, coalesce(p_serial, false))
    ON CONFLICT DO NOTHING;
    IF FOUND AND p_serial THEN
        -- What was queued before stands in line from now on; who finishes what runs already comes before this, or sees it.
        PERFORM 1 FROM {schema}.worker_queue AS w
        WHERE w.session_id = p_session AND w.session_scope = p_instance AND w.state = 2
        ORDER BY w.id
        FOR UPDATE;
        PERFORM {schema}.refresh_serial_heads(ARRAY[p_instance], ARRAY[p_session]);
    END IF;
END
$function$
