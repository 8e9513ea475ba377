-- Deletes the visible messages of the given instances that belong to a call of a former life of a parent (see
-- is_of_former_life): starts of children, and answers. Returns them as a count per instance, like strays
-- (S17). An id without any rows left is forgotten.
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.settle_orphans(p_instances TEXT[], p_now BIGINT)
RETURNS TABLE (instance_id TEXT, dropped BIGINT)
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH gone AS (
        DELETE FROM {schema}.orchestrator_queue AS q
        WHERE q.id = ANY (ARRAY(
            SELECT q.id FROM {schema}.orchestrator_queue AS q
            WHERE q.instance_id || '' = ANY (p_instances) AND q.parent_life IS NOT NULL
              AND (q.state - 0 = 1 OR q.visible_ms <= p_now)
              AND {schema}.is_of_former_life(q.parent_instance_id, q.parent_life, q.starts)
        ))
        RETURNING q.instance_id
    )
    SELECT gone.instance_id, count(*) FROM gone GROUP BY gone.instance_id;
    PERFORM {schema}.free_turns(p_instances, p_now);
    PERFORM {schema}.forget_instances(p_instances);
END
$function$
