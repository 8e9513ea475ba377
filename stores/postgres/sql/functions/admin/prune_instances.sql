-- Deletes old executions of the given instances and returns how many instances it looked at and how many
-- executions and events it deleted. It never deletes the current execution, a running one, or one of the
-- p_keep_last highest ids (at least one). With p_completed_before it deletes only executions that ended
-- before this time (Unix milliseconds). Key-value state is not touched.
-- Locks: `instance_locks` of the given instances in the order of instance_id.
CREATE OR REPLACE FUNCTION {schema}.prune_instances(p_instances TEXT[], p_keep_last BIGINT,
    p_completed_before BIGINT)
RETURNS TABLE(instances BIGINT, executions BIGINT, events BIGINT)
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_instances  TEXT[];
    v_executions BIGINT[];
BEGIN
    PERFORM 1 FROM {schema}.instance_locks AS lock
    WHERE lock.instance_id = ANY (p_instances) ORDER BY lock.instance_id FOR UPDATE;

    SELECT count(DISTINCT id) INTO instances FROM unnest(p_instances) AS given(id);
    SELECT array_agg(old.instance_id), array_agg(old.execution_id) INTO v_instances, v_executions
    FROM (
        SELECT execution.instance_id, execution.execution_id, execution.status, execution.completed_at,
            row_number() OVER (PARTITION BY execution.instance_id
                ORDER BY execution.execution_id DESC) AS place
        FROM {schema}.executions AS execution
        WHERE execution.instance_id = ANY (p_instances)
    ) AS old
    LEFT JOIN {schema}.instances AS known ON known.instance_id = old.instance_id
    WHERE old.place > greatest(coalesce(p_keep_last, 1), 1)
      AND old.execution_id <> coalesce(known.current_execution_id, 1)
      AND old.status <> 'Running'
      AND (p_completed_before IS NULL
          OR old.completed_at < to_timestamp(least(p_completed_before, 9000000000000000) / 1000.0));

    DELETE FROM {schema}.history AS event
    USING unnest(v_instances, v_executions) AS old(instance_id, execution_id)
    WHERE event.instance_id = old.instance_id AND event.execution_id = old.execution_id;
    GET DIAGNOSTICS events = ROW_COUNT;
    DELETE FROM {schema}.executions AS execution
    USING unnest(v_instances, v_executions) AS old(instance_id, execution_id)
    WHERE execution.instance_id = old.instance_id AND execution.execution_id = old.execution_id;
    GET DIAGNOSTICS executions = ROW_COUNT;
    RETURN NEXT;
END
$function$
