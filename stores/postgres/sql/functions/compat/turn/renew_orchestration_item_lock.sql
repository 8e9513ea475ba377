-- Compatible function: renews the lease of an instance (S4). Raises SF004 if the token is unknown or its
-- lease has expired, and SF013 if p_extend_secs is NULL.
-- Locks: `instance_locks` of the instance.
CREATE OR REPLACE FUNCTION {schema}.renew_orchestration_item_lock(
    p_lock_token TEXT, p_now_ms BIGINT, p_extend_secs BIGINT
) RETURNS VOID
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
BEGIN
    IF p_extend_secs IS NULL THEN
        -- A lease that never expires would block the row for ever.
        RAISE EXCEPTION 'p_extend_secs is required' USING ERRCODE = 'SF013';
    END IF;
    PERFORM 1 FROM {schema}.renew_turns(ARRAY[p_lock_token], ARRAY[p_extend_secs * 1000], p_now_ms) AS t
    WHERE t.code = 'ok';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'Lock token invalid, expired, or already acked' USING ERRCODE = 'SF004';
    END IF;
END
$function$
