-- Lists those of the given instances that are roots and have ended, oldest first. A child whose parent was
-- deleted counts as a root.
-- p_completed_before: only roots that ended before this time (Unix milliseconds), NULL: all.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.named_roots(p_instances TEXT[], p_completed_before BIGINT)
RETURNS TABLE(instance_id TEXT)
LANGUAGE sql STABLE AS $function$
    SELECT root.instance_id
    FROM {schema}.instances AS root
    JOIN {schema}.executions AS execution
      ON execution.instance_id = root.instance_id AND execution.execution_id = root.current_execution_id
    WHERE root.instance_id = ANY (p_instances)
      AND root.status <> 'Running'
      AND (root.parent_instance_id IS NULL OR NOT EXISTS (
          SELECT 1 FROM {schema}.instances AS parent WHERE parent.instance_id = root.parent_instance_id
      ))
      AND (p_completed_before IS NULL
          OR execution.completed_at < to_timestamp(least(p_completed_before, 9000000000000000) / 1000.0))
    ORDER BY root.ord
$function$
