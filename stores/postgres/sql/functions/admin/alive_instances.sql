-- Finds those of the given instances that are alive: the current execution runs, or the start of the next one waits
-- (F12). One without a row is in its latest execution.
-- Locks: none; who decides by the answer has locked the instance_locks of all of them.
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
       )
$function$
