-- Makes messages ready whose time has come (S9), and ends expired leases (S5): up to 256 of each, the next
-- sweep handles the rest. Locked rows do not count towards the bound, so that a transaction with many locks
-- does not hide the rows after its own (S18). If nothing is due, it costs one index lookup each. p_due and
-- p_leased are the floors at which the index scans start.
-- Locks: `instance_locks`, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.sweep_turns(p_now BIGINT, p_due BIGINT DEFAULT 0,
    p_leased BIGINT DEFAULT 0) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_bound CONSTANT INTEGER := 256;
    -- The most messages that it looks at while their instances are locked by other transactions.
    v_max_page CONSTANT INTEGER := 4096;
    v_ids BIGINT[];
    v_instances TEXT[];
BEGIN
    SELECT array_agg(due.id), array_agg(due.instance_id) INTO v_ids, v_instances
    FROM (
        SELECT soonest.id, soonest.instance_id
        FROM (
            SELECT q.id, q.instance_id FROM {schema}.orchestrator_queue AS q
            WHERE q.state = 0 AND q.visible_ms BETWEEN p_due AND p_now
            ORDER BY q.visible_ms LIMIT v_max_page
        ) AS soonest
        CROSS JOIN LATERAL (
            SELECT 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = soonest.instance_id
                FOR UPDATE SKIP LOCKED
        ) AS taken
        LIMIT v_bound
    ) AS due;
    IF v_ids IS NOT NULL THEN
        PERFORM {schema}.make_messages_ready(v_ids, v_instances, p_now);
    END IF;

    IF p_leased > p_now THEN
        RETURN;
    END IF;
    v_instances := ARRAY(
        SELECT l.instance_id FROM {schema}.instance_locks AS l
        WHERE l.lock_token IS NOT NULL AND l.locked_until BETWEEN p_leased AND p_now
        ORDER BY l.locked_until LIMIT v_bound
        FOR UPDATE SKIP LOCKED
    );
    IF cardinality(v_instances) > 0 THEN
        PERFORM {schema}.give_up_turns(v_instances, p_now);
    END IF;
END
$function$
