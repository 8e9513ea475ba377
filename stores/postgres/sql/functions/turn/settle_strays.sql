-- Settles what no lease can stand on. Messages ahead of a start that is still to come wait for it: their instance is taken
-- out of the ready ones, and since when it is there is kept (S2). Other messages have no instance: they are dropped, and
-- counted in a row each (S17); an id that nothing refers to any more is forgotten.
-- Locks: none; the caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.settle_strays(p_instances TEXT[], p_now BIGINT)
RETURNS TABLE (instance_id TEXT, dropped BIGINT)
LANGUAGE plpgsql
SET enable_seqscan TO off
AS $function$
#variable_conflict use_column
DECLARE
    v_instance TEXT;
    v_dropped BIGINT;
BEGIN
    FOREACH v_instance IN ARRAY p_instances LOOP
        IF EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = v_instance AND q.starts AND q.state = 0) THEN
            UPDATE {schema}.instance_locks AS l
            SET head = NULL, lock_token = NULL, locked_until = NULL
            WHERE l.instance_id = v_instance;
        ELSE
            DELETE FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = v_instance AND q.state = 1;
            GET DIAGNOSTICS v_dropped = ROW_COUNT;
            PERFORM {schema}.free_turns(ARRAY[v_instance], p_now);
            PERFORM {schema}.forget_instance(v_instance);
            RETURN QUERY SELECT v_instance, v_dropped;
        END IF;
    END LOOP;
END
$function$
