-- Queues messages in the order of the arrays; p_starts NULL means that no message is a start. A message
-- without a visible time, or whose time has passed, is ready and makes its instance ready unless the instance
-- is leased (S7). Any other message waits for its time (S9).
-- A termination needs no code: once it is visible, its instance has no route any more, and no refusal delays
-- it (S21).
-- A message first becomes due at its visible time; one without a delay now, and not before the last ready
-- message of its instance, so that the clock of the server can be set back and arrivals keep their order
-- (S2). p_due: the times of messages that were queued before.
-- p_parents, p_lives, p_parent_executions and p_parent_events: the calls of parents that starts of children
-- and answers belong to (S17); NULL for messages that belong to none. p_failures: how activities failed,
-- beside the completions that tell it (S22).
-- A start always updates the row of its instance. A transaction with an older snapshot gets a serialization
-- failure there, so it cannot start an instance that another transaction has started (S17).
-- Locks: none. The caller has locked the instances, so its transaction has an id before message ids are
-- drawn, as lower_floor requires.
CREATE OR REPLACE FUNCTION {schema}.queue_messages(
    p_instances TEXT[], p_items TEXT[], p_visible BIGINT[], p_starts BOOLEAN[], p_traceparents TEXT[],
    p_now BIGINT, p_parents TEXT[] DEFAULT NULL, p_lives BIGINT[] DEFAULT NULL,
    p_parent_executions BIGINT[] DEFAULT NULL, p_parent_events BIGINT[] DEFAULT NULL,
    p_due BIGINT[] DEFAULT NULL, p_failures TEXT[] DEFAULT NULL
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_oldest BIGINT;
    v_soonest BIGINT;
    v_codeless TEXT[];
BEGIN
    WITH queued AS (
        INSERT INTO {schema}.orchestrator_queue
            (instance_id, work_item, state, visible_ms, starts, traceparent, created_at, due_ms,
            parent_instance_id, parent_life, parent_execution_id, parent_event_id, codeless, failure)
        SELECT m.instance_id, m.item, CASE WHEN m.visible > p_now THEN 0 ELSE 1 END,
            coalesce(m.visible, p_now),
            coalesce(m.starts, false), m.traceparent, to_timestamp(p_now / 1000.0),
            coalesce(m.due, CASE WHEN m.visible <> p_now THEN m.visible ELSE greatest(p_now, (
                SELECT coalesce(q.due_ms, q.visible_ms) FROM {schema}.orchestrator_queue AS q
                WHERE q.instance_id = m.instance_id AND q.state + 0 = 1
                ORDER BY coalesce(q.due_ms, q.visible_ms) DESC, q.id DESC LIMIT 1
            )) END),
            m.parent, m.life, m.execution, m.event, starts_with(m.item, '{"TerminateInstance"'),
            m.failure
        FROM unnest(p_instances, p_items, p_visible, p_starts, p_traceparents, p_due, p_parents, p_lives,
            p_parent_executions, p_parent_events, p_failures)
            WITH ORDINALITY AS m (instance_id, item, visible, starts, traceparent, due, parent, life,
                execution, event, failure, place)
        ORDER BY m.place
        RETURNING instance_id, id, state, visible_ms, codeless
    ), fresh AS (
        SELECT instance_id, min(id) AS head, min(visible_ms) AS since FROM queued
            WHERE state = 1 GROUP BY instance_id
    ), readied AS (
        -- An instance that has ready messages and no head waits for its start. Its older messages come first.
        UPDATE {schema}.instance_locks AS l
        SET head = coalesce(l.head, least(fresh.head, CASE WHEN l.since > 0 THEN (
                SELECT q.id FROM {schema}.orchestrator_queue AS q
                WHERE q.instance_id = l.instance_id AND q.state = 1
                ORDER BY q.id LIMIT 1
            ) END)),
            since = CASE WHEN l.since > 0 THEN least(l.since, fresh.since) ELSE fresh.since END
        FROM fresh
        WHERE l.instance_id = fresh.instance_id AND l.instance_id = ANY (p_instances) AND l.lock_token IS NULL
        RETURNING l.head, fresh.head AS fresh
    )
    SELECT (SELECT min(readied.head) FROM readied WHERE readied.head < readied.fresh),
        (SELECT min(queued.visible_ms) FROM queued WHERE queued.state = 0),
        (SELECT array_agg(queued.instance_id) FROM queued WHERE queued.codeless AND queued.state = 1)
    INTO v_oldest, v_soonest, v_codeless;
    IF v_codeless IS NOT NULL THEN
        PERFORM {schema}.open_instances(v_codeless, p_now);
    END IF;
    -- All other ids were drawn in this transaction and are above the floors.
    IF v_oldest IS NOT NULL THEN
        PERFORM {schema}.lower_floor('turns', v_oldest);
    END IF;
    IF v_soonest IS NOT NULL THEN
        PERFORM {schema}.lower_floor('due_messages', v_soonest);
        IF true = ANY (p_starts) THEN
            UPDATE {schema}.instance_locks AS l SET since = l.since
            WHERE l.instance_id = ANY (ARRAY(
                SELECT m.instance_id FROM unnest(p_instances, p_visible, p_starts) AS m (instance_id, visible,
                    starts)
                WHERE m.starts AND m.visible > p_now
            ));
        END IF;
    END IF;
END
$function$
