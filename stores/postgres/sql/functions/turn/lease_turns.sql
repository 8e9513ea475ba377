-- Leases instances (S1): stamps their ready messages and counts an attempt on each (S5), in order of arrival, at most
-- MAX_TURN_MESSAGES of an instance. A start has first claim on a place among them, wherever it stands (S2).
-- Locks: none; the caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.lease_turns(p_instances TEXT[], p_until BIGINT, p_now BIGINT)
RETURNS TABLE (
    token TEXT, instance_id TEXT, name TEXT, version TEXT, execution_id BIGINT, run_id BIGINT, last_event_id BIGINT,
    has_kv BOOLEAN, now BIGINT, ids BIGINT[], items TEXT[], attempts INTEGER[], traceparents TEXT[]
)
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_max_messages CONSTANT INTEGER := 1000;
BEGIN
    RETURN QUERY
    WITH leased AS (
        UPDATE {schema}.instance_locks AS l
        SET lock_token = 'turn-' || nextval('{schema}.numbers'), locked_until = p_until, head = NULL
        WHERE l.instance_id = ANY (p_instances)
        RETURNING l.instance_id, l.lock_token
    ), batch AS (
        SELECT leased.lock_token, taken.id
        FROM leased
        CROSS JOIN LATERAL (
            WITH oldest AS MATERIALIZED (
                SELECT q.id, q.starts FROM {schema}.orchestrator_queue AS q
                WHERE q.instance_id = leased.instance_id AND q.state = 1
                ORDER BY q.id LIMIT v_max_messages
            )
            SELECT ready.id
            FROM (
                SELECT oldest.id, oldest.starts FROM oldest
                UNION ALL
                SELECT q.id, q.starts FROM {schema}.orchestrator_queue AS q
                WHERE q.instance_id = leased.instance_id AND q.starts AND q.state = 1
                  AND (SELECT count(*) FROM oldest) = v_max_messages
                  AND q.id > (SELECT max(oldest.id) FROM oldest)
            ) AS ready
            ORDER BY ready.starts DESC, ready.id LIMIT v_max_messages
        ) AS taken
    ), stamped AS (
        UPDATE {schema}.orchestrator_queue AS q
        SET lock_token = batch.lock_token, attempt_count = q.attempt_count + 1
        FROM batch
        WHERE q.id = batch.id AND q.instance_id = ANY (p_instances) AND q.state = 1
        RETURNING q.instance_id, q.lock_token, q.id, q.work_item, q.attempt_count, q.traceparent
    ), arrived AS (
        SELECT s.instance_id, s.lock_token,
            array_agg(s.id ORDER BY s.id) AS ids,
            array_agg(s.work_item ORDER BY s.id) AS items,
            array_agg(s.attempt_count ORDER BY s.id) AS attempts,
            array_agg(s.traceparent ORDER BY s.id) AS traceparents
        FROM stamped AS s
        GROUP BY s.instance_id, s.lock_token
    )
    SELECT a.lock_token, a.instance_id, i.orchestration_name, i.orchestration_version, current.execution_id,
        (SELECT e.run_id FROM {schema}.executions AS e
            WHERE e.instance_id = a.instance_id AND e.execution_id = current.execution_id),
        coalesce((SELECT h.event_id FROM {schema}.history AS h
            WHERE h.instance_id = a.instance_id AND h.execution_id = current.execution_id
            ORDER BY h.event_id DESC LIMIT 1), 0),
        (SELECT 1 FROM {schema}.kv AS k WHERE k.instance_id = a.instance_id AND k.layer = 0 LIMIT 1) IS NOT NULL,
        p_now, a.ids, a.items, a.attempts, a.traceparents
    FROM arrived AS a
    LEFT JOIN LATERAL (
        SELECT i.orchestration_name, i.orchestration_version, i.current_execution_id FROM {schema}.instances AS i
        WHERE i.instance_id = a.instance_id
        OFFSET 0
    ) AS i ON true
    CROSS JOIN LATERAL (SELECT coalesce(i.current_execution_id, 1) AS execution_id) AS current
    ORDER BY a.ids[1];
END
$function$
