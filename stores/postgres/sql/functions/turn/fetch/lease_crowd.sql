-- Chooses the messages of a lease for an instance that has more than one lease carries: its starts, and the
-- other messages that became due first, in the order of a batch (S2). The messages are returned in one array,
-- so there are at most p_max, with at most p_max_bytes together. The first is chosen however long it is, so
-- that every lease carries at least one message (S18).
-- With p_careful the item of a message that the database cannot read, or whose failure it cannot read, is
-- NULL (S15).
-- Locks: none. The caller has locked the instance.
CREATE OR REPLACE FUNCTION {schema}.lease_crowd(
    p_instance TEXT, p_max INTEGER, p_max_bytes BIGINT DEFAULT 134217728,
    p_careful BOOLEAN DEFAULT false,
    OUT ids BIGINT[], OUT items TEXT[], OUT attempts INTEGER[], OUT traceparents TEXT[],
    OUT failures TEXT[]
)
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    SELECT array_agg(m.id ORDER BY m.due, m.id), array_agg(
            CASE WHEN p_careful THEN {schema}.whole_or_null(m.work_item, m.failure) ELSE m.work_item END
            ORDER BY m.due, m.id),
        array_agg(m.attempt_count + 1 ORDER BY m.due, m.id),
        array_agg(m.traceparent ORDER BY m.due, m.id),
        array_agg(CASE WHEN p_careful THEN {schema}.text_or_null(m.failure) ELSE m.failure END
            ORDER BY m.due, m.id)
    INTO ids, items, attempts, traceparents, failures
    FROM (
        SELECT q.id, q.work_item, q.attempt_count, q.traceparent, q.failure,
            coalesce(q.due_ms, q.visible_ms) AS due, row_number() OVER taken AS place,
            sum(octet_length(q.work_item) + coalesce(octet_length(q.failure), 0)) OVER taken AS bytes
        FROM (
            (SELECT q.id, false AS starts FROM {schema}.orchestrator_queue AS q
                WHERE q.instance_id = p_instance AND q.state + 0 = 1
                ORDER BY coalesce(q.due_ms, q.visible_ms), q.id LIMIT p_max)
            UNION
            SELECT q.id, true FROM {schema}.orchestrator_queue AS q
            WHERE q.instance_id = p_instance AND q.starts AND q.state = 1
        ) AS chosen
        JOIN {schema}.orchestrator_queue AS q ON q.id = chosen.id
        GROUP BY q.id
        WINDOW taken AS (
            ORDER BY bool_or(chosen.starts) DESC, coalesce(q.due_ms, q.visible_ms), q.id
            ROWS UNBOUNDED PRECEDING
        )
        ORDER BY bool_or(chosen.starts) DESC, coalesce(q.due_ms, q.visible_ms), q.id LIMIT p_max
    ) AS m
    WHERE m.place = 1 OR m.bytes <= p_max_bytes;
    UPDATE {schema}.instance_locks AS l SET leased = ids WHERE l.instance_id = p_instance AND l.leased <> ids;
END
$function$
