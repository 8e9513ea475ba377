-- Deletes old executions of up to p_limit instances that match the filter, oldest instances first.
-- prune_instances says which executions are old.
-- p_instances NULL: all instances. p_ended_before: only instances whose current execution ended before this
-- time (Unix milliseconds), NULL: all.
-- Locks: `instance_locks` of the chosen instances in the order of instance_id.
CREATE OR REPLACE FUNCTION {schema}.prune_executions_bulk(
    p_instances TEXT[], p_ended_before BIGINT, p_limit BIGINT, p_keep_last BIGINT, p_completed_before BIGINT
)
RETURNS TABLE(instances BIGINT, executions BIGINT, events BIGINT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_before TIMESTAMPTZ := CASE WHEN p_ended_before IS NOT NULL
        THEN to_timestamp(least(p_ended_before, 9000000000000000) / 1000.0) END;
    v_chosen TEXT[];
BEGIN
    IF p_instances IS NULL THEN
        v_chosen := ARRAY(
            SELECT known.instance_id FROM {schema}.instances AS known
            WHERE v_before IS NULL OR (
                SELECT execution.completed_at FROM {schema}.executions AS execution
                WHERE execution.instance_id = known.instance_id
                    AND execution.execution_id = known.current_execution_id
            ) < v_before
            ORDER BY known.ord LIMIT p_limit
        );
    ELSE
        v_chosen := ARRAY(
            SELECT known.instance_id FROM {schema}.instances AS known
            LEFT JOIN {schema}.executions AS execution
              ON execution.instance_id = known.instance_id
                  AND execution.execution_id = known.current_execution_id
            WHERE known.instance_id = ANY (p_instances)
                AND (v_before IS NULL OR execution.completed_at < v_before)
            ORDER BY known.ord LIMIT p_limit
        );
    END IF;
    RETURN QUERY SELECT * FROM {schema}.prune_instances(v_chosen, p_keep_last, p_completed_before);
END
$function$
