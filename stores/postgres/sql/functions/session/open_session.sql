-- Opens a session that an instance owns. If it is open already, its options stay as they are (S13). If it was
-- closed and the lease of its former owner lasts, its row gets that lease, and the epoch of the closed claim:
-- only that owner may claim the session until it has detached it.
-- Locks: the row of the session in `lines`, then in `closed_sessions`; for a serial session also its leased
-- work in `worker_queue` in the order of id.
CREATE OR REPLACE FUNCTION {schema}.open_session(
    p_instance TEXT, p_session TEXT, p_idle_ms BIGINT, p_serial BOOLEAN, p_now BIGINT
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_former {schema}.closed_sessions;
    v_is_kept BOOLEAN;
BEGIN
    PERFORM {schema}.lock_lines(ARRAY[p_instance], ARRAY[p_session]);
    DELETE FROM {schema}.closed_sessions AS c
    WHERE c.instance_id = p_instance AND c.session_id = p_session AND (
        SELECT 1 FROM {schema}.sessions AS s WHERE s.instance_id = p_instance AND s.session_id = p_session
    ) IS NULL
    RETURNING c.* INTO v_former;
    v_is_kept := coalesce(v_former.locked_until > p_now AND v_former.replaced_by IS NULL, false);
    INSERT INTO {schema}.sessions
        (instance_id, session_id, worker_id, incarnation, held, locked_until, last_activity_at, epoch,
            idle_timeout, serial, closed_epoch)
    VALUES (p_instance, p_session, CASE WHEN v_is_kept THEN v_former.worker_id ELSE '' END,
        CASE WHEN v_is_kept THEN v_former.incarnation END, v_is_kept,
        CASE WHEN v_is_kept THEN v_former.locked_until ELSE 0 END, p_now, 0,
        p_idle_ms, coalesce(p_serial, false), CASE WHEN v_is_kept THEN v_former.epoch END)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF p_serial THEN
        -- Work that was queued before is served in line from now on. The locks make a finish of leased work
        -- either come first or see that the session is serial.
        PERFORM 1 FROM {schema}.worker_queue AS w
        WHERE w.session_id = p_session AND w.session_scope = p_instance AND w.state = 2
        ORDER BY w.id
        FOR UPDATE;
        PERFORM {schema}.refresh_serial_heads(ARRAY[p_instance], ARRAY[p_session]);
    END IF;
    IF v_is_kept THEN
        PERFORM {schema}.own_heads(ARRAY[p_instance], ARRAY[p_session], ':' || v_former.worker_id);
        PERFORM {schema}.lower_floor('held_sessions', v_former.locked_until);
    END IF;
END
$function$
