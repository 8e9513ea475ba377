-- Compatible function: lists the executions of an instance in ascending order. No rows if the instance does
-- not exist. Columns: out_execution_id.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.list_executions(p_instance_id TEXT)
RETURNS TABLE(out_execution_id BIGINT)
LANGUAGE sql STABLE AS $function$
    SELECT execution.execution_id FROM {schema}.executions AS execution
    WHERE execution.instance_id = p_instance_id ORDER BY execution.execution_id
$function$
