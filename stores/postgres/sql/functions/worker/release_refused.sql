-- Makes work due that was refused and delayed, if the worker lists its handler (S21): the next fetch makes it
-- ready. Handles a bounded number and returns it (the larger one of instances and work); the caller asks
-- again while it is release_bound(). Rows that other transactions have locked are left to the next report.
-- Locks: `instance_locks`, then `worker_queue`, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.release_refused(p_worker TEXT, p_now BIGINT) RETURNS INTEGER
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_bound CONSTANT INTEGER := {schema}.release_bound();
    v_pins BIGINT[];
    v_tags TEXT[];
    v_instances TEXT[];
    v_messages BIGINT[];
    v_work BIGINT[];
BEGIN
    v_pins := ARRAY(
        SELECT p.pin FROM {schema}.pins AS p
        CROSS JOIN LATERAL (
            SELECT h.versions FROM {schema}.worker_handlers AS h
            WHERE h.worker_id = p_worker AND h.kind = 0 AND h.handler = p.handler
            OFFSET 0
        ) AS h
        CROSS JOIN LATERAL (
            SELECT w.engine_lo, w.engine_hi FROM {schema}.workers AS w WHERE w.worker_id = p_worker OFFSET 0
        ) AS w
        WHERE p.pin < -1 AND (p.handler_version IS NULL OR p.handler_version = ANY (h.versions))
          AND {schema}.accepts(NULL, true, w.engine_lo, w.engine_hi, NULL, false, p.version)
    );
    IF cardinality(v_pins) > 0 THEN
        SELECT array_agg(l.instance_id), array_agg(message.id) INTO v_instances, v_messages
        FROM (
            SELECT refused.instance_id, refused.refused
            FROM unnest(v_pins) AS wanted (pin)
            CROSS JOIN LATERAL (
                SELECT l.instance_id, l.refused FROM {schema}.instance_locks AS l
                WHERE l.pin = wanted.pin AND l.refused IS NOT NULL
                LIMIT v_bound
                FOR UPDATE SKIP LOCKED
            ) AS refused
            LIMIT v_bound
        ) AS l
        CROSS JOIN LATERAL unnest(l.refused) AS message (id);
        UPDATE {schema}.instance_locks AS l SET refused = NULL WHERE l.instance_id = ANY (v_instances);
        UPDATE {schema}.orchestrator_queue AS q SET state = 0, visible_ms = p_now
        WHERE q.id = ANY (v_messages) AND q.state = 0 AND q.visible_ms > p_now;
        IF FOUND THEN
            PERFORM {schema}.lower_floor('due_messages', p_now);
        END IF;
    END IF;

    v_tags := ARRAY(
        SELECT r.tag FROM {schema}.routes AS r
        CROSS JOIN LATERAL (
            SELECT w.tags, w.serves_sessions FROM {schema}.workers AS w
            WHERE w.worker_id = p_worker OFFSET 0
        ) AS w
        WHERE {schema}.accepts(w.tags, w.serves_sessions, NULL, NULL, r.plain, r.on_session, NULL)
          AND EXISTS (
            SELECT 1 FROM {schema}.worker_handlers AS h
            WHERE h.worker_id = p_worker AND h.kind = 1 AND h.handler = r.handler
        )
    );
    IF cardinality(v_tags) > 0 THEN
        v_work := ARRAY(
            SELECT refused.id
            FROM unnest(v_tags) AS wanted (tag)
            CROSS JOIN LATERAL (
                SELECT w.id FROM {schema}.worker_queue AS w
                WHERE w.tag = wanted.tag AND w.refused AND w.state = 0
                LIMIT v_bound
                FOR UPDATE SKIP LOCKED
            ) AS refused
            LIMIT v_bound
        );
        UPDATE {schema}.worker_queue AS w
        SET state = 0, visible_ms = least(w.visible_ms, p_now), refused = false
        WHERE w.id = ANY (v_work);
        IF FOUND THEN
            PERFORM {schema}.lower_floor('due_work', p_now);
        END IF;
    END IF;
    RETURN greatest(
        (SELECT count(DISTINCT i.id) FROM unnest(v_instances) AS i (id)), cardinality(v_work), 0
    );
END
$function$
