-- Compatible function: renews the live sessions of the given owners that are not idle, and returns how many
-- (S13). Unlike renew_sessions it releases no session because its work waits. Without an idle time it renews
-- nothing.
-- Locks: those of renew_sessions, for one owner after the other in the order of their ids.
CREATE OR REPLACE FUNCTION {schema}.renew_session_lock(
    p_owner_ids TEXT[], p_now_ms BIGINT, p_extend_ms BIGINT, p_idle_timeout_ms BIGINT
) RETURNS BIGINT
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    v_owner   TEXT;
    v_renewed BIGINT;
    v_count   BIGINT := 0;
BEGIN
    IF p_idle_timeout_ms IS NULL THEN
        RETURN 0;
    END IF;
    FOR v_owner IN SELECT DISTINCT owner COLLATE "C" FROM unnest(p_owner_ids) AS owner ORDER BY 1 LOOP
        SELECT count(*) INTO v_renewed
        FROM {schema}.renew_sessions(
            v_owner, NULL, p_extend_ms, p_idle_timeout_ms, 9223372036854775807, NULL, false, p_now_ms
        ) AS s
        WHERE s.outcome = 'renewed';
        v_count := v_count + v_renewed;
    END LOOP;
    RETURN v_count;
END
$function$
