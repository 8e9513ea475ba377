-- Ends the lease of unreadable work (S15): it waits for p_retry_ms before its next delivery, or is set
-- aside with the reason once it was delivered p_max_attempts times; with NULL, for work that was not read
-- in time, it is never set aside, this is no delivery, and a serial session waits for it (D29).
-- With p_claimed the claim of the session that was made for this lease is released, unless it is in use.
-- Returns the delivery count and the id in `set_aside`, NULL if the work waits; no row if the token is
-- unknown. p_lost: whether the database cannot read the text of the work or of its terms; what is set aside
-- then has an empty payload, and what of its terms and its last error can be read.
-- Locks: the row of its session in `lines`, its row in `worker_queue`, then `sessions`.
CREATE OR REPLACE FUNCTION {schema}.pass_over_work(
    p_token TEXT, p_reason TEXT, p_retry_ms BIGINT, p_max_attempts INTEGER, p_claimed BOOLEAN,
    p_now_ms BIGINT DEFAULT NULL, p_lost BOOLEAN DEFAULT false
) RETURNS TABLE (attempts INTEGER, aside BIGINT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_work {schema}.worker_queue;
    v_aside BIGINT;
    v_leased_by XID;
BEGIN
    SELECT w.* INTO v_work FROM {schema}.worker_queue AS w WHERE w.lock_token = p_token;
    IF v_work.session_id IS NOT NULL THEN
        PERFORM {schema}.lock_lines(ARRAY[v_work.session_scope], ARRAY[v_work.session_id]);
    END IF;
    SELECT w.* INTO v_work FROM {schema}.worker_queue AS w WHERE w.lock_token = p_token FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF p_claimed AND v_work.session_id IS NOT NULL THEN
        v_leased_by := (SELECT w.xmin FROM {schema}.worker_queue AS w WHERE w.id = v_work.id);
    END IF;
    IF (v_work.attempt_count < p_max_attempts) IS NOT FALSE THEN
        UPDATE {schema}.worker_queue AS w
        SET state = 0, unreadable = p_max_attempts IS NOT NULL,
            visible_ms = {schema}.after_ms(v_now, p_retry_ms),
            lock_token = NULL,
            locked_until = NULL, epoch = NULL,
            attempt_count = w.attempt_count - CASE WHEN p_max_attempts IS NULL THEN 1 ELSE 0 END,
            deliveries = CASE WHEN p_max_attempts IS NULL THEN greatest(w.deliveries - 1, 0)
                ELSE w.deliveries END,
            first_fetched = CASE WHEN p_max_attempts IS NULL AND w.deliveries <= 1 THEN NULL
                ELSE w.first_fetched END
        WHERE w.id = v_work.id;
        PERFORM {schema}.lower_floor('due_work', {schema}.after_ms(v_now, p_retry_ms));
    ELSE
        INSERT INTO {schema}.set_aside (queue, instance_id, payload, reason, attempts, at_ms, execution_id,
            activity_id, tag, session_scope, session_id, traceparent, call, deliveries, tries, last_error,
            first_fetched)
        VALUES (1, v_work.instance_id, CASE WHEN p_lost THEN '' ELSE v_work.work_item END, p_reason,
            v_work.attempt_count, v_now, v_work.execution_id, v_work.activity_id,
            {schema}.plain_tag(v_work.tag), v_work.session_scope, v_work.session_id, v_work.traceparent,
            CASE WHEN p_lost THEN {schema}.text_or_null(v_work.call) ELSE v_work.call END,
            v_work.deliveries, v_work.tries,
            CASE WHEN p_lost THEN {schema}.text_or_null(v_work.last_error) ELSE v_work.last_error END,
            v_work.first_fetched)
        RETURNING id INTO v_aside;
        DELETE FROM {schema}.worker_queue AS w WHERE w.id = v_work.id;
    END IF;
    IF v_work.session_id IS NOT NULL THEN
        PERFORM {schema}.refresh_heads(ARRAY[v_work.session_scope], ARRAY[v_work.session_id],
            ARRAY[v_work.tag]);
        IF p_claimed THEN
            PERFORM {schema}.unclaim(ARRAY[v_work.session_scope], ARRAY[v_work.session_id],
                ARRAY[v_work.epoch], v_now, ARRAY[v_leased_by]);
        END IF;
    END IF;
    RETURN QUERY SELECT v_work.attempt_count, v_aside;
END
$function$
