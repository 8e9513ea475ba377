-- Compatible function: describes an execution. No row if it does not exist. Columns: out_execution_id,
-- out_status, out_output, out_started_at, out_completed_at, out_event_count.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.get_execution_info(p_instance_id TEXT, p_execution_id BIGINT)
RETURNS TABLE(
    out_execution_id BIGINT, out_status TEXT, out_output TEXT, out_started_at TIMESTAMPTZ,
    out_completed_at TIMESTAMPTZ,
    out_event_count BIGINT
)
LANGUAGE sql STABLE AS $function$
    SELECT execution.execution_id, execution.status, execution.output, execution.started_at,
        execution.completed_at,
        (SELECT count(*) FROM {schema}.history AS event
         WHERE event.instance_id = execution.instance_id AND event.execution_id = execution.execution_id)
    FROM {schema}.executions AS execution
    WHERE execution.instance_id = p_instance_id AND execution.execution_id = p_execution_id
$function$
