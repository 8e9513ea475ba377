-- Lists the root instances that have ended, oldest first. Reads one index range per end status and merges
-- them, only as far as the caller reads. A child whose parent was deleted counts as a root.
-- p_completed_before: only roots that ended before this time (Unix milliseconds), NULL: all.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.ended_roots(p_completed_before BIGINT)
RETURNS TABLE(instance_id TEXT)
LANGUAGE sql STABLE AS $function$
    SELECT root.instance_id
    FROM (
        (SELECT completed.* FROM {schema}.instances AS completed WHERE completed.status = 'Completed'
            ORDER BY completed.ord)
        UNION ALL
        (SELECT failed.* FROM {schema}.instances AS failed WHERE failed.status = 'Failed' ORDER BY failed.ord)
        UNION ALL
        (SELECT continued.* FROM {schema}.instances AS continued WHERE continued.status = 'ContinuedAsNew'
            ORDER BY continued.ord)
    ) AS root
    WHERE (SELECT 1 FROM {schema}.instances AS parent
        WHERE parent.instance_id = root.parent_instance_id) IS NULL
      AND (p_completed_before IS NULL OR (
          SELECT execution.completed_at FROM {schema}.executions AS execution
          WHERE execution.instance_id = root.instance_id
              AND execution.execution_id = root.current_execution_id
      ) < to_timestamp(least(p_completed_before, 9000000000000000) / 1000.0))
    ORDER BY root.ord
$function$
