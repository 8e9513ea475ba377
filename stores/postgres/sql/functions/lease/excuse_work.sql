-- Takes the delivery of an expired lease off the count of its work (S5). Works once for a token, whoever
-- holds the work now; a lease that expired and was not swept yet ends uncounted. Returns whether a delivery
-- was taken off.
-- Locks: those of give_work_back if the lease was not swept, else the row of `worker_queue`, then the row of
-- `ended_leases`.
CREATE OR REPLACE FUNCTION {schema}.excuse_work(p_token TEXT, p_now_ms BIGINT DEFAULT NULL) RETURNS BOOLEAN
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_until BIGINT := (SELECT w.locked_until FROM {schema}.worker_queue AS w WHERE w.lock_token = p_token);
    v_work BIGINT;
BEGIN
    IF v_until > {schema}.now_ms(p_now_ms) THEN
        RETURN false;
    END IF;
    -- A lease that expired cannot be renewed, so only a sweep can change the row meanwhile. It has waited
    -- since the lease ended.
    IF v_until IS NOT NULL AND {schema}.give_work_back(
        ARRAY[p_token], ARRAY[NULL]::bigint[], ARRAY[true], false, v_until
    ) IS NOT NULL THEN
        RETURN true;
    END IF;
    PERFORM 1 FROM {schema}.worker_queue AS w
    WHERE w.id = (SELECT e.work_id FROM {schema}.ended_leases AS e WHERE e.token = p_token)
    FOR UPDATE;
    DELETE FROM {schema}.ended_leases AS e WHERE e.token = p_token AND e.reason = 0
    RETURNING e.work_id INTO v_work;
    UPDATE {schema}.worker_queue AS w SET attempt_count = greatest(w.attempt_count - 1, 0)
    WHERE w.id = v_work;
    RETURN FOUND;
END
$function$
