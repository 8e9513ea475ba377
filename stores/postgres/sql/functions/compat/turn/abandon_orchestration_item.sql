-- Compatible function: abandons the lease of an instance. Changes only the leased messages (S4, S6): with
-- p_delay_ms they become visible after the delay, with NULL their visible times stay. With p_ignore_attempt
-- this delivery is not counted. Raises SF001 if the token is unknown or its lease has expired.
-- Locks: those of abandon_turns.
CREATE OR REPLACE FUNCTION {schema}.abandon_orchestration_item(
    p_lock_token TEXT, p_now_ms BIGINT, p_delay_ms BIGINT DEFAULT NULL, p_ignore_attempt BOOLEAN DEFAULT false
) RETURNS VOID
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
BEGIN
    PERFORM 1 FROM {schema}.abandon_turns(
        ARRAY[p_lock_token], ARRAY[p_delay_ms], ARRAY[coalesce(p_ignore_attempt, false)], p_now_ms,
        {schema}.everything()
    ) AS t
    WHERE t.code = 'ok';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'Invalid lock token' USING ERRCODE = 'SF001';
    END IF;
END
$function$
