-- Leases the given instances until p_until (S1), each with its ready messages in the order in which they
-- first became due, then of arrival. Messages whose time has come are among them, whether a sweep has come to
-- them or not. Number and bytes of the messages are bounded, because they are returned in one array; a ready
-- start is always among them (S2). The lease stores the ids of its messages, so messages that arrive later
-- wait (S7). The returned delivery counts include this lease; the rows are updated if it ends without a
-- commit (S5). An instance that cannot be leased any more, because its start was delayed between the caller's
-- look and its lock, is skipped (S2).
-- `rivals` are the ids of starts whose parent is another life of the one that started the instance (S17).
-- With p_careful the item of a message that the database cannot read, or whose failure it cannot read, is
-- NULL (S15).
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.lease_turns(p_instances TEXT[], p_until BIGINT, p_now BIGINT,
    p_max_bytes BIGINT DEFAULT 134217728, p_careful BOOLEAN DEFAULT false)
RETURNS TABLE (
    token TEXT, instance_id TEXT, name TEXT, version TEXT, execution_id BIGINT, run_id BIGINT,
    last_event_id BIGINT,
    has_kv BOOLEAN, now BIGINT, ids BIGINT[], items TEXT[], attempts INTEGER[], traceparents TEXT[],
    rivals BIGINT[], failures TEXT[]
)
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_max_messages CONSTANT INTEGER := 1000;
    -- The most messages of at most this length fit into p_max_bytes. Longer messages are not read at first.
    v_short CONSTANT BIGINT := CASE WHEN p_careful THEN -1 ELSE p_max_bytes / v_max_messages END;
    v_starts BOOLEAN;
    v_head BIGINT;
BEGIN
    UPDATE {schema}.orchestrator_queue AS q SET state = 1
    FROM (
        SELECT due.row FROM unnest(p_instances) AS t (id)
        CROSS JOIN LATERAL (
            SELECT q.ctid AS row FROM {schema}.orchestrator_queue AS q
            WHERE q.instance_id = t.id AND q.state + 0 = 0 AND coalesce(q.due_ms, q.visible_ms) <= p_now
              AND q.visible_ms <= p_now
            ORDER BY coalesce(q.due_ms, q.visible_ms), q.id LIMIT v_max_messages
        ) AS due
    ) AS due
    WHERE q.ctid = due.row;

    FOR token, instance_id, name, version, execution_id, run_id, last_event_id, has_kv, now, ids, items,
        attempts, traceparents,
        rivals, failures, v_starts IN
    WITH found AS MATERIALIZED (
        SELECT l.row, l.head, t.id, m.ids, m.items, m.attempts, m.traceparents, m.failures, m.starts
        FROM unnest(p_instances) WITH ORDINALITY AS t (id, place)
        CROSS JOIN LATERAL (
            SELECT l.ctid AS row, l.head FROM {schema}.instance_locks AS l WHERE l.instance_id = t.id OFFSET 0
        ) AS l
        CROSS JOIN LATERAL (
            SELECT array_agg(ready.id) AS ids,
                array_agg(ready.work_item) FILTER (WHERE ready.bytes <= v_short) AS items,
                array_agg(ready.attempt_count + 1) AS attempts, array_agg(ready.traceparent) AS traceparents,
                array_agg(CASE WHEN ready.bytes <= v_short THEN ready.failure END) AS failures,
                bool_or(ready.starts) AS starts
            FROM (
                SELECT q.id, q.work_item, q.attempt_count, q.traceparent, q.failure, q.starts,
                    octet_length(q.work_item) + coalesce(octet_length(q.failure), 0) AS bytes
                    FROM {schema}.orchestrator_queue AS q
                WHERE q.instance_id = t.id AND q.state + 0 = 1
                ORDER BY coalesce(q.due_ms, q.visible_ms), q.id LIMIT v_max_messages
            ) AS ready
        ) AS m
        ORDER BY t.place
    ), leased AS (
        UPDATE {schema}.instance_locks AS l
        SET lock_token = 'lock_' || gen_random_uuid(), locked_until = p_until, leased = found.ids, head = NULL
        FROM found
        WHERE l.ctid = found.row
        RETURNING l.lock_token, found.id, found.ids, found.items, found.attempts, found.traceparents,
            found.failures, found.starts, found.head
    )
    SELECT a.lock_token, a.id, i.orchestration_name, i.orchestration_version, current.execution_id,
        (SELECT e.run_id FROM {schema}.executions AS e
            WHERE e.instance_id = a.id AND e.execution_id = current.execution_id),
        coalesce((SELECT h.event_id FROM {schema}.history AS h
            WHERE h.instance_id = a.id AND h.execution_id = current.execution_id
            ORDER BY h.event_id DESC LIMIT 1), 0),
        (SELECT 1 FROM {schema}.kv AS k WHERE k.instance_id = a.id AND k.layer = 0 LIMIT 1) IS NOT NULL,
        p_now, a.ids, a.items, a.attempts, a.traceparents,
        CASE WHEN a.starts AND i.orchestration_name IS NOT NULL THEN ARRAY(
            SELECT q.id FROM {schema}.orchestrator_queue AS q
            WHERE q.instance_id = a.id AND q.starts AND q.state = 1 AND q.parent_life <> i.parent_life
        ) END, a.failures,
        a.starts OR i.orchestration_name IS NOT NULL
    FROM leased AS a
    LEFT JOIN LATERAL (
        SELECT i.orchestration_name, i.orchestration_version, i.current_execution_id, i.parent_life
            FROM {schema}.instances AS i
        WHERE i.instance_id = a.id
        OFFSET 0
    ) AS i ON true
    CROSS JOIN LATERAL (SELECT coalesce(i.current_execution_id, 1) AS execution_id) AS current
    ORDER BY a.head
    LOOP
        IF v_starts IS NOT TRUE AND cardinality({schema}.firm_turns(ARRAY[instance_id])) = 0 THEN
            v_head := (
                SELECT q.id FROM {schema}.orchestrator_queue AS q
                WHERE q.instance_id = instance_id AND q.state = 1
                ORDER BY q.id LIMIT 1
            );
            UPDATE {schema}.instance_locks AS l
            SET lock_token = NULL, locked_until = NULL, leased = NULL, head = v_head
            WHERE l.lock_token = token;
            PERFORM {schema}.lower_floor('turns', v_head);
            CONTINUE;
        END IF;
        IF cardinality(ids) = v_max_messages OR cardinality(ids) IS DISTINCT FROM cardinality(items) THEN
            SELECT c.ids, c.items, c.attempts, c.traceparents, c.failures
            INTO ids, items, attempts, traceparents, failures
            FROM {schema}.lease_crowd(instance_id, v_max_messages, p_max_bytes, p_careful) AS c;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$function$
