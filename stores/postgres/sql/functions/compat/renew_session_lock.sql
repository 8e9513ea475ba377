-- Extends the live leases of the sessions that any of these owners holds and that are not idle, and returns how many there
-- were (S13). The work that waits in them ends no lease.
-- Locks: those of renew_sessions, owner by owner.
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
