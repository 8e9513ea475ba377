-- Deletes work that is withdrawn, and returns how much there was. Leases that last are remembered, so that
-- their holders are told (S12); expired ones are forgotten with the work.
-- Locks: none. The caller has locked the rows.
CREATE OR REPLACE FUNCTION {schema}.drop_work(p_ids BIGINT[], p_now BIGINT) RETURNS BIGINT
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    -- How long after the end of its lease a token is known as withdrawn.
    v_known_ms CONSTANT BIGINT := 3600000;
    v_dropped BIGINT;
    v_tokens TEXT[];
    v_until BIGINT[];
    v_expired BIGINT[];
BEGIN
    WITH gone AS (
        DELETE FROM {schema}.worker_queue AS w WHERE w.id = ANY (p_ids)
        RETURNING w.id, w.lock_token, w.locked_until, w.has_expired
    )
    SELECT count(*), array_agg(gone.lock_token) FILTER (WHERE gone.locked_until > p_now),
        array_agg(gone.locked_until) FILTER (WHERE gone.locked_until > p_now),
        array_agg(gone.id) FILTER (WHERE gone.has_expired)
    INTO v_dropped, v_tokens, v_until, v_expired
    FROM gone;
    IF v_tokens IS NOT NULL THEN
        INSERT INTO {schema}.ended_leases (token, reason, until_ms)
        SELECT held.token, 1, {schema}.after_ms(held.until, v_known_ms)
        FROM unnest(v_tokens, v_until) AS held (token, until)
        ON CONFLICT DO NOTHING;
    END IF;
    IF v_expired IS NOT NULL THEN
        DELETE FROM {schema}.ended_leases AS e WHERE e.work_id = ANY (v_expired);
    END IF;
    RETURN v_dropped;
END
$function$
