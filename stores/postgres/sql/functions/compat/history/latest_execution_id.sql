-- Compatible function: returns the highest execution id of an instance, 1 if there are no executions.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.latest_execution_id(p_instance_id TEXT)
RETURNS BIGINT
LANGUAGE sql STABLE AS $function$
    SELECT coalesce(max(execution.execution_id), 1) FROM {schema}.executions AS execution
    WHERE execution.instance_id = p_instance_id
$function$
