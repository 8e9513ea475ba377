-- Handles those of the given instances that cannot be leased (see firm_turns). If the start of an instance is
-- delayed, its messages wait for it: the instance is taken out of the ready ones, and keeps the time since
-- when it was ready (S2). Otherwise there is no such instance: its messages are deleted, and returned as a
-- count per id (S17). An id without any rows left is forgotten.
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.settle_strays(p_instances TEXT[], p_now BIGINT)
RETURNS TABLE (instance_id TEXT, dropped BIGINT)
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_firm TEXT[] := {schema}.firm_turns(p_instances);
    v_strays TEXT[];
    v_early TEXT[];
BEGIN
    SELECT array_agg(i.id) FILTER (WHERE i.is_early), array_agg(i.id) FILTER (WHERE NOT i.is_early)
    INTO v_early, v_strays
    FROM (
        SELECT i.id, (
            SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = i.id AND q.starts
                AND q.state = 0 LIMIT 1
        ) IS NOT NULL AS is_early
        FROM unnest(p_instances) AS i (id)
        WHERE i.id <> ALL (v_firm)
    ) AS i;

    UPDATE {schema}.instance_locks AS l
    SET head = NULL, lock_token = NULL, locked_until = NULL
    WHERE l.instance_id = ANY (v_early);

    RETURN QUERY
    WITH gone AS (
        DELETE FROM {schema}.orchestrator_queue AS q
        WHERE q.instance_id = ANY (v_strays) AND q.state = 1
        RETURNING q.instance_id
    )
    SELECT gone.instance_id, count(*) FROM gone GROUP BY gone.instance_id;
    PERFORM {schema}.free_turns(v_strays, p_now);
    PERFORM {schema}.forget_instances(v_strays);
END
$function$
