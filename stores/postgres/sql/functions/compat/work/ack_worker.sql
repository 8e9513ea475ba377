-- Compatible function: deletes leased work and sends its completion in one transaction (S4, S11). Without a
-- completion it only deletes the work, as for cancelled work. Raises SF002 if the token is unknown or its
-- lease has expired, and SF003 if there is a completion but no instance to send it to. Without a time, the
-- time of the database decides; but it does not judge a lease that was taken at a given time, which holds
-- until the work is leased again.
-- Locks: those of finish_work_items.
CREATE OR REPLACE FUNCTION {schema}.ack_worker(
    p_lock_token TEXT, p_instance_id TEXT DEFAULT NULL, p_completion_json TEXT DEFAULT NULL,
    p_now_ms BIGINT DEFAULT NULL
) RETURNS VOID
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
BEGIN
    IF p_now_ms IS NULL AND starts_with(p_lock_token, 'lock_at_') THEN
        v_now := least(v_now, (
            SELECT w.locked_until - 1 FROM {schema}.worker_queue AS w WHERE w.lock_token = p_lock_token
        ));
    END IF;
    IF p_completion_json IS NOT NULL AND p_instance_id IS NULL AND EXISTS (
        SELECT 1 FROM {schema}.worker_queue AS w WHERE w.lock_token = p_lock_token AND w.locked_until > v_now
    ) THEN
        RAISE EXCEPTION 'p_instance_id is required when p_completion_json is provided'
            USING ERRCODE = 'SF003';
    END IF;
    PERFORM 1 FROM {schema}.finish_work_items(
        ARRAY[p_lock_token], ARRAY[p_instance_id], ARRAY[p_completion_json], ARRAY[NULL]::TEXT[], v_now,
        {schema}.everything()
    ) AS t
    WHERE t.code = 'ok';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'Worker queue item not found or already processed' USING ERRCODE = 'SF002';
    END IF;
END
$function$
