-- Compatible function: leases the oldest work that the caller may run (S5, S9, S13, S14, S18). No row if
-- there is none. With p_owner_id it also leases work of sessions that this owner holds, and of sessions
-- without an owner, which it then claims for p_session_lock_timeout_ms (NULL: as long as the work is leased).
-- p_tags: the accepted tags, '' for work without a tag; NULL accepts all.
-- The token of a lease that was taken at a given p_now_ms begins with `lock_at_`, every other with `lock_`.
-- Columns: out_work_item, out_lock_token, out_attempt_count. Raises SF013 if p_lock_timeout_ms is NULL. Work
-- that the database cannot read is passed over (S15), also if the read takes longer than
-- `statement_timeout`: the function returns although its time is up.
-- Locks: those of fetch_work_items, all skipping locked rows, and those of pass_over_work.
CREATE OR REPLACE FUNCTION {schema}.fetch_work_item(
    p_now_ms BIGINT, p_lock_timeout_ms BIGINT, p_owner_id TEXT DEFAULT NULL,
    p_session_lock_timeout_ms BIGINT DEFAULT NULL,
    p_tags TEXT[] DEFAULT ARRAY['']
) RETURNS TABLE(out_work_item TEXT, out_lock_token TEXT, out_attempt_count INTEGER)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    v_tags TEXT[] := (
        SELECT array_agg(CASE WHEN tag = '' THEN '' ELSE ':' || tag END) FROM unnest(p_tags) AS tag
    );
    -- The most leases that it looks at.
    v_passes CONSTANT INTEGER := 16;
    v_retry_ms CONSTANT BIGINT := 5000;
    -- NULL if texts were not read in time, which are neither counted nor set aside: they may be whole.
    v_max_attempts INTEGER := 10;
    v_reason CONSTANT TEXT := 'the database cannot read its text: it is damaged';
    v_is_careful BOOLEAN := false;
    v_work RECORD;
BEGIN
    IF p_lock_timeout_ms IS NULL THEN
        -- A lease that never expires would block the row for ever.
        RAISE EXCEPTION 'p_lock_timeout_ms is required' USING ERRCODE = 'SF013';
    END IF;
    IF cardinality(p_tags) = 0 THEN
        RETURN;
    END IF;
    FOR v_pass IN 1..v_passes LOOP
        BEGIN
            SELECT w.* INTO v_work
            FROM {schema}.fetch_work_items(
                1, v_tags, ARRAY[p_owner_id],
                p_lock_timeout_ms, p_owner => p_owner_id,
                p_session_lock_ms => coalesce(p_session_lock_timeout_ms, p_lock_timeout_ms), p_claim => true,
                p_now_ms => p_now_ms, p_careful => v_is_careful
            ) AS w
            WHERE w.token IS NOT NULL;
            -- Counting characters reads the whole text.
            PERFORM length(v_work.item);
        EXCEPTION WHEN data_corrupted OR index_corrupted THEN
            -- The work failed the fetch: the next one leases it without its text.
            IF v_is_careful THEN
                RAISE;
            END IF;
            v_is_careful := true;
            CONTINUE;
        WHEN query_canceled THEN
            -- The work took all the time: the next fetch leases it without reading its text.
            IF v_is_careful OR NOT {schema}.is_statement_over() THEN
                RAISE;
            END IF;
            v_is_careful := true;
            v_max_attempts := NULL;
            CONTINUE;
        END;
        IF v_work.token IS NULL THEN
            RETURN;
        END IF;
        IF v_work.item IS NOT NULL THEN
            IF p_now_ms IS NOT NULL THEN
                UPDATE {schema}.worker_queue AS w SET lock_token = 'lock_at_' || gen_random_uuid()
                WHERE w.lock_token = v_work.token
                RETURNING w.lock_token INTO v_work.token;
            END IF;
            RETURN QUERY SELECT v_work.item, v_work.token, v_work.attempt;
            RETURN;
        END IF;
        PERFORM {schema}.pass_over_work(v_work.token, v_reason, v_retry_ms, v_max_attempts,
            (v_work.claim <> 'held') IS TRUE, p_now_ms, true);
        -- Without time no other text can be read either.
        EXIT WHEN v_max_attempts IS NULL;
    END LOOP;
END
$function$
