-- Ends the leases of instances. An instance that has a ready message is ready again, any other has nothing to
-- do. `since`, from when it could have been leased, becomes p_since, or an earlier time if its lease expired
-- earlier or it was ready before. p_pins: the engine versions that the instances are pinned to from now on;
-- NULL keeps the pins. Routes are kept, see keep_routes. p_expired: the leases have expired, and were
-- remembered. Returns the instances that are ready.
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.free_turns(p_instances TEXT[], p_since BIGINT,
    p_pins BIGINT[] DEFAULT NULL, p_expired BOOLEAN DEFAULT false)
RETURNS TEXT[]
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_ready TEXT[];
    v_oldest BIGINT;
    v_routed TEXT[];
    v_routed_pins BIGINT[];
    v_expired TEXT[];
BEGIN
    WITH found AS MATERIALIZED (
        SELECT l.row, i.pin, (
            SELECT q.id FROM {schema}.orchestrator_queue AS q
            WHERE q.instance_id = i.id AND q.state = 1
            ORDER BY q.id LIMIT 1
        ) AS head
        FROM unnest(p_instances, p_pins) AS i (id, pin)
        CROSS JOIN LATERAL (
            SELECT l.ctid AS row FROM {schema}.instance_locks AS l WHERE l.instance_id = i.id OFFSET 0
        ) AS l
    ), freed AS (
        UPDATE {schema}.instance_locks AS l
        SET lock_token = NULL,
            locked_until = NULL,
            leased = NULL,
            head = f.head,
            since = CASE
                WHEN f.head IS NULL THEN 0
                WHEN l.lock_token IS NOT NULL THEN least(l.locked_until, p_since)
                WHEN l.since > 0 THEN least(l.since, p_since)
                ELSE p_since
            END,
            pin = CASE WHEN l.pin < -1 THEN l.pin ELSE coalesce(f.pin, l.pin) END,
            -- Messages that were leased are marked no more; a refusal marks them again.
            refused = CASE WHEN l.refused IS NOT NULL THEN nullif(ARRAY(
                SELECT r.id FROM unnest(l.refused) AS r (id) WHERE (r.id = ANY (l.leased)) IS NOT TRUE
            ), '{}') END,
            has_expired = l.has_expired OR p_expired
        FROM found AS f
        WHERE l.ctid = f.row
        RETURNING l.instance_id, l.head, l.pin < -1 AND f.pin IS NOT NULL AS is_routed, f.pin, l.has_expired
    )
    SELECT array_agg(instance_id) FILTER (WHERE head IS NOT NULL), min(head),
        array_agg(instance_id) FILTER (WHERE is_routed), array_agg(pin) FILTER (WHERE is_routed),
        array_agg(instance_id) FILTER (WHERE has_expired)
    INTO v_ready, v_oldest, v_routed, v_routed_pins, v_expired
    FROM freed;
    IF v_routed IS NOT NULL THEN
        PERFORM {schema}.keep_routes(v_routed, v_routed_pins);
    END IF;
    IF v_expired IS NOT NULL AND NOT p_expired THEN
        PERFORM {schema}.forget_turns(v_expired);
    END IF;
    IF v_oldest IS NOT NULL THEN
        PERFORM {schema}.lower_floor('turns', v_oldest);
    END IF;
    RETURN coalesce(v_ready, '{}');
END
$function$
