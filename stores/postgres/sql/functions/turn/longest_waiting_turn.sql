-- Tells since when the ready instance that waits for longest could have been leased; NULL when there is none. Messages ahead of
-- a start that is still to come wait for it and do not count: their instance is taken out of the ready ones, in a bounded
-- number (S2, S18).
-- Locks: instance_locks of those, skipping what others have locked.
CREATE OR REPLACE FUNCTION {schema}.longest_waiting_turn(p_now BIGINT) RETURNS BIGINT
LANGUAGE plpgsql
SET enable_seqscan TO off
AS $function$
#variable_conflict use_column
DECLARE
    v_bound CONSTANT INTEGER := 256;
    v_instance TEXT;
    v_since BIGINT;
BEGIN
    FOR v_round IN 1..v_bound LOOP
        SELECT l.instance_id, l.since INTO v_instance, v_since
        FROM {schema}.instance_locks AS l
        WHERE l.lock_token IS NULL AND l.head IS NOT NULL
        ORDER BY l.since LIMIT 1;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        IF cardinality({schema}.firm_turns(ARRAY[v_instance])) > 0 OR NOT EXISTS (
            SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = v_instance AND q.starts AND q.state = 0
        ) THEN
            RETURN v_since;
        END IF;
        PERFORM 1 FROM {schema}.instance_locks AS l
        WHERE l.instance_id = v_instance AND l.lock_token IS NULL AND l.head IS NOT NULL
        FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            RETURN v_since;
        END IF;
        PERFORM {schema}.settle_strays(ARRAY[v_instance], p_now);
    END LOOP;
    RETURN NULL;
END
$function$
