-- Opens a session that an instance owns. If it is open already, its options stay as they are (S13).
-- Locks: the row of the session in `lines`; for a serial session also its leased work in `worker_queue` in
-- the order of id.
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
        -- Work that was queued before is served in line from now on. The locks make a finish of leased work
        -- either come first or see that the session is serial.
        PERFORM 1 FROM {schema}.worker_queue AS w
        WHERE w.session_id = p_session AND w.session_scope = p_instance AND w.state = 2
        ORDER BY w.id
        FOR UPDATE;
        PERFORM {schema}.refresh_serial_heads(ARRAY[p_instance], ARRAY[p_session]);
    END IF;
END
$function$
