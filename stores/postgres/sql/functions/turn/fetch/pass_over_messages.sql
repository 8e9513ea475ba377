-- Takes unreadable messages out of a lease (S15). Each waits for p_retry_ms before its next delivery, or is
-- set aside with the reason once it was delivered p_max_attempts times; with NULL, for messages that were not
-- read in time, it is never set aside and no delivery is counted. p_lost: whether the database cannot
-- read the text of the message or of its failure; what is set aside then has an empty payload. A lease
-- without remaining messages ends. The mark of a refusal ends with this delivery (S21). Returns one row per
-- message; `aside` is the id in `set_aside`, NULL if it waits.
-- Locks: `instance_locks` of the instance.
CREATE OR REPLACE FUNCTION {schema}.pass_over_messages(
    p_token TEXT, p_ids BIGINT[], p_reasons TEXT[], p_retry_ms BIGINT, p_max_attempts INTEGER,
    p_now_ms BIGINT, p_lost BOOLEAN[] DEFAULT NULL
) RETURNS TABLE (id BIGINT, attempts INTEGER, aside BIGINT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_instance TEXT;
    v_leased BIGINT[];
    -- The ids of the messages that are passed over.
    v_ids BIGINT[];
BEGIN
    SELECT l.instance_id, l.leased INTO v_instance, v_leased
    FROM {schema}.instance_locks AS l WHERE l.lock_token = p_token FOR UPDATE;
    IF v_instance IS NULL THEN
        RETURN;
    END IF;
    v_ids := ARRAY(SELECT m.id FROM unnest(p_ids) AS m (id) WHERE m.id = ANY (v_leased));

    RETURN QUERY
    WITH gone AS (
        DELETE FROM {schema}.orchestrator_queue AS q
        WHERE q.id = ANY (v_ids) AND q.attempt_count + 1 >= p_max_attempts
        RETURNING q.id, q.attempt_count + 1 AS attempts, nextval('{schema}.numbers') AS aside,
            CASE WHEN p_lost[array_position(p_ids, q.id)] THEN '' ELSE q.work_item END AS payload, q.starts,
            CASE WHEN p_lost[array_position(p_ids, q.id)] THEN {schema}.text_or_null(q.failure)
                ELSE q.failure END AS failure,
            q.traceparent, coalesce(q.due_ms, q.visible_ms) AS due, q.parent_instance_id AS parent,
            q.parent_life AS life, q.parent_execution_id AS execution, q.parent_event_id AS event
    ), kept AS (
        INSERT INTO {schema}.set_aside (id, queue, instance_id, payload, reason, attempts, at_ms, starts,
            traceparent, due_ms, parent_instance_id, parent_life, parent_execution_id, parent_event_id,
            failure)
        SELECT gone.aside, 0, v_instance, gone.payload, p_reasons[array_position(p_ids, gone.id)],
            gone.attempts, v_now, gone.starts, gone.traceparent, gone.due, gone.parent, gone.life,
            gone.execution, gone.event, gone.failure
        FROM gone ORDER BY gone.id
    ), delayed AS (
        UPDATE {schema}.orchestrator_queue AS q
        SET state = 0, visible_ms = {schema}.after_ms(v_now, p_retry_ms),
            due_ms = coalesce(q.due_ms, q.visible_ms),
            attempt_count = q.attempt_count + CASE WHEN p_max_attempts IS NULL THEN 0 ELSE 1 END
        WHERE q.id = ANY (v_ids) AND (q.attempt_count + 1 < p_max_attempts) IS NOT FALSE
        RETURNING q.id, q.attempt_count
    )
    SELECT gone.id, gone.attempts, gone.aside FROM gone
    UNION ALL
    SELECT delayed.id, delayed.attempt_count, NULL FROM delayed;

    IF EXISTS (
        SELECT 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = v_instance AND l.pin < -1
    ) AND cardinality({schema}.firm_turns(ARRAY[v_instance])) = 0 THEN
        -- Its start was passed over: its other messages may be strays, which need no code.
        PERFORM {schema}.open_instances(ARRAY[v_instance]);
    END IF;
    PERFORM {schema}.lower_floor('due_messages', {schema}.after_ms(v_now, p_retry_ms));
    v_leased := ARRAY(SELECT m.id FROM unnest(v_leased) WITH ORDINALITY AS m (id, place)
        WHERE m.id <> ALL (v_ids) ORDER BY m.place);
    IF cardinality(v_leased) = 0 THEN
        PERFORM {schema}.free_turns(ARRAY[v_instance], v_now);
    ELSE
        UPDATE {schema}.instance_locks AS l
        SET leased = v_leased,
            refused = CASE WHEN l.refused IS NOT NULL THEN nullif(ARRAY(
                SELECT r.id FROM unnest(l.refused) AS r (id) WHERE r.id <> ALL (v_ids)
            ), '{}') END
        WHERE l.instance_id = v_instance;
    END IF;
END
$function$
