-- Compatible function: describes an instance. No row if it does not exist. Columns: out_instance_id,
-- out_orchestration_name, out_orchestration_version, out_current_execution_id, out_status and out_output (of
-- the current execution), out_created_at, out_updated_at, out_parent_instance_id.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.get_instance_info(p_instance_id TEXT)
RETURNS TABLE(
    out_instance_id TEXT, out_orchestration_name TEXT, out_orchestration_version TEXT,
    out_current_execution_id BIGINT,
    out_status TEXT, out_output TEXT, out_created_at TIMESTAMPTZ, out_updated_at TIMESTAMPTZ,
    out_parent_instance_id TEXT
)
LANGUAGE sql STABLE AS $function$
    SELECT known.instance_id, known.orchestration_name, known.orchestration_version,
        known.current_execution_id,
        coalesce(execution.status, 'Running'), execution.output, known.created_at, known.updated_at,
        known.parent_instance_id
    FROM {schema}.instances AS known
    LEFT JOIN {schema}.executions AS execution
      ON execution.instance_id = known.instance_id AND execution.execution_id = known.current_execution_id
    WHERE known.instance_id = p_instance_id
$function$
