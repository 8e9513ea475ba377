-- Returns those of the given instances that are alive: their current execution is running, or the start of
-- an execution is queued for them. An instance without a row in `instances` is judged by its latest
-- execution.
-- Locks: none. A caller that acts on the answer has locked `instance_locks` of all given instances.
CREATE OR REPLACE FUNCTION {schema}.alive_instances(p_instances TEXT[])
RETURNS TABLE(instance_id TEXT)
LANGUAGE sql STABLE AS $function$
    SELECT given.id
    FROM (SELECT DISTINCT id FROM unnest(p_instances) AS given(id)) AS given
    LEFT JOIN {schema}.instances AS known ON known.instance_id = given.id
    LEFT JOIN LATERAL (
        SELECT latest.status FROM {schema}.executions AS latest
        WHERE latest.instance_id = given.id
          AND (known.current_execution_id IS NULL OR latest.execution_id = known.current_execution_id)
        ORDER BY latest.execution_id DESC LIMIT 1
    ) AS execution ON true
    WHERE execution.status = 'Running'
       OR EXISTS (
           SELECT 1 FROM {schema}.orchestrator_queue AS message
           WHERE message.instance_id = given.id AND message.starts
             AND (message.parent_life IS NULL OR NOT {schema}.is_of_former_life(
                 message.parent_instance_id, message.parent_life, true
             ))
       )
$function$
