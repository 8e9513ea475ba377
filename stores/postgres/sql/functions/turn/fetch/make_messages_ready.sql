-- Makes delayed messages ready whose time has come. Their instances become ready unless they are leased (S7,
-- S9). One that needs no code ends the route of its instance (S21).
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.make_messages_ready(p_ids BIGINT[], p_instances TEXT[], p_now BIGINT)
    RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_instances TEXT[];
    v_since BIGINT[];
    v_oldest BIGINT;
    v_codeless TEXT[];
BEGIN
    WITH moved AS (
        UPDATE {schema}.orchestrator_queue AS q
        SET state = 1
        WHERE q.id = ANY (p_ids)
          AND q.instance_id = ANY (p_instances)
          AND q.state = 0
          AND q.visible_ms <= p_now
        RETURNING q.instance_id, q.visible_ms, q.codeless
    ), earliest AS (
        SELECT instance_id, min(visible_ms) AS since, bool_or(codeless) AS codeless FROM moved
        GROUP BY instance_id
    )
    SELECT array_agg(instance_id), array_agg(since), array_agg(instance_id) FILTER (WHERE codeless)
    INTO v_instances, v_since, v_codeless
    FROM earliest;
    IF v_codeless IS NOT NULL THEN
        PERFORM {schema}.open_instances(v_codeless, p_now);
    END IF;

    WITH readied AS (
        UPDATE {schema}.instance_locks AS l
        SET head = (
                SELECT q.id FROM {schema}.orchestrator_queue AS q
                WHERE q.instance_id = l.instance_id AND q.state = 1
                ORDER BY q.id LIMIT 1
            ),
            since = CASE WHEN l.since > 0 THEN least(l.since, m.since) ELSE m.since END
        FROM unnest(v_instances, v_since) AS m (instance_id, since)
        WHERE l.instance_id = m.instance_id AND l.instance_id = ANY (v_instances) AND l.lock_token IS NULL
        RETURNING l.head
    )
    SELECT min(readied.head) INTO v_oldest FROM readied;
    PERFORM {schema}.lower_floor('turns', v_oldest);
END
$function$
