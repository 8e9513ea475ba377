-- Compatible function: abandons the lease of work (S4, S6). With p_delay_ms the work becomes visible after
-- the delay, with NULL its visible time stays. With p_ignore_attempt this delivery is not counted. Raises
-- SF001 if the token is unknown or its lease has expired.
-- Locks: those of abandon_work_items.
CREATE OR REPLACE FUNCTION {schema}.abandon_work_item(
    p_lock_token TEXT, p_now_ms BIGINT, p_delay_ms BIGINT DEFAULT NULL, p_ignore_attempt BOOLEAN DEFAULT false
) RETURNS VOID
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
BEGIN
    PERFORM 1 FROM {schema}.abandon_work_items(
        ARRAY[p_lock_token], ARRAY[p_delay_ms], ARRAY[coalesce(p_ignore_attempt, false)], p_now_ms,
        {schema}.everything()
    ) AS t
    WHERE t.code = 'ok';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'Invalid lock token' USING ERRCODE = 'SF001';
    END IF;
END
$function$
