-- Compatible function: renews the lease of work and marks its session as used (S4, S13). Raises SF004 if the
-- token is unknown, its lease has expired or the work was withdrawn (S12), and SF013 if p_extend_secs is
-- NULL.
-- Locks: those of renew_work_items.
CREATE OR REPLACE FUNCTION {schema}.renew_work_item_lock(
    p_lock_token TEXT, p_now_ms BIGINT, p_extend_secs BIGINT
) RETURNS VOID
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
BEGIN
    IF p_extend_secs IS NULL THEN
        -- A lease that never expires would block the row for ever.
        RAISE EXCEPTION 'p_extend_secs is required' USING ERRCODE = 'SF013';
    END IF;
    PERFORM 1 FROM {schema}.renew_work_items(ARRAY[p_lock_token], ARRAY[p_extend_secs * 1000], p_now_ms) AS t
    WHERE t.code = 'ok';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'Lock token invalid, expired, or already acked' USING ERRCODE = 'SF004';
    END IF;
END
$function$
