-- Passes over messages of a lease that the holder cannot read (S15): each waits to be read again, or is set aside when it was
-- tried p_max_attempts times (the fetch has counted this one). A lease that is left without messages is given back. One row
-- for each message that was passed over; `aside` is its number among those set aside.
-- Locks: instance_locks.
CREATE OR REPLACE FUNCTION {schema}.pass_over_messages(
    p_token TEXT, p_ids BIGINT[], p_reasons TEXT[], p_retry_ms BIGINT, p_max_attempts INTEGER, p_now_ms BIGINT
) RETURNS TABLE (id BIGINT, attempts INTEGER, aside BIGINT)
LANGUAGE plpgsql
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET enable_hashjoin TO off
SET enable_mergejoin TO off
SET jit TO off
SET plan_cache_mode TO force_generic_plan
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_instance TEXT;
BEGIN
    SELECT l.instance_id INTO v_instance FROM {schema}.instance_locks AS l WHERE l.lock_token = p_token FOR UPDATE;
    IF v_instance IS NULL THEN
        RETURN;
    END IF;

    RETURN QUERY
    WITH gone AS (
        DELETE FROM {schema}.orchestrator_queue AS q
        USING unnest(p_ids, p_reasons) AS m (id, reason)
        WHERE q.id = m.id AND q.id = ANY (p_ids) AND q.lock_token = p_token AND q.attempt_count >= p_max_attempts
        RETURNING q.id, q.work_item, m.reason, q.attempt_count, nextval('{schema}.numbers') AS aside
    ), kept AS (
        INSERT INTO {schema}.set_aside (id, queue, instance_id, payload, reason, attempts, at_ms)
        SELECT gone.aside, 0, v_instance, gone.work_item, gone.reason, gone.attempt_count, v_now FROM gone ORDER BY gone.id
    ), delayed AS (
        UPDATE {schema}.orchestrator_queue AS q
        SET state = 0, visible_ms = {schema}.after_ms(v_now, p_retry_ms), lock_token = NULL
        WHERE q.id = ANY (p_ids) AND q.lock_token = p_token AND q.attempt_count < p_max_attempts
        RETURNING q.id, q.attempt_count
    )
    SELECT gone.id, gone.attempt_count, gone.aside FROM gone
    UNION ALL
    SELECT delayed.id, delayed.attempt_count, NULL FROM delayed;

    IF NOT EXISTS (
        SELECT 1 FROM {schema}.orchestrator_queue AS q
        WHERE q.instance_id = v_instance AND q.state = 1 AND q.lock_token = p_token
    ) THEN
        PERFORM {schema}.free_turns(ARRAY[v_instance], v_now);
    END IF;
END
$function$
