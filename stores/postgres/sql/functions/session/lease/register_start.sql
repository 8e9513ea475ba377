-- Registers a start of a node (S13). `registered` is its incarnation, a number that rises with each start:
-- calls of the node with an older one change nothing from then on. The start that is the newest already keeps
-- its number. A start replaces the incarnation p_replaces, or none if that is NULL; if the newest is another
-- one, nothing changes, `registered` is NULL, and the newest one is told, and whether its process is younger
-- than the one that asks, which started p_age_ms ago.
-- Locks: the row of the node in `nodes`.
CREATE OR REPLACE FUNCTION {schema}.register_start(
    p_node TEXT, p_start TEXT, p_age_ms BIGINT, p_replaces BIGINT, p_now_ms BIGINT DEFAULT NULL,
    OUT registered BIGINT, OUT newest BIGINT, OUT is_younger BOOLEAN
)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_started BIGINT := v_now - least(p_age_ms, v_now);
    v_start TEXT;
BEGIN
    -- Two first starts of a node would not see each other without a row to lock.
    INSERT INTO {schema}.nodes (node_id, incarnation) VALUES (p_node, 0) ON CONFLICT DO NOTHING;
    -- A start that is later than now was noted by a clock that was ahead: when it was is not known.
    SELECT n.incarnation, n.started_ms > v_started AND n.started_ms <= v_now, n.start_id
    INTO newest, is_younger, v_start
    FROM {schema}.nodes AS n WHERE n.node_id = p_node FOR UPDATE;
    IF v_start = p_start AND p_start <> '' THEN
        registered := newest;
    ELSIF newest IN (0, p_replaces) THEN
        -- The number is drawn under the lock of the row, so that a later start has a higher number.
        UPDATE {schema}.nodes AS n
        SET incarnation = nextval('{schema}.numbers'), start_id = p_start, started_ms = v_started
        WHERE n.node_id = p_node
        RETURNING n.incarnation INTO registered;
    END IF;
END
$function$
