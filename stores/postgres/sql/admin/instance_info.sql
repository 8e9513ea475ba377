-- Describes an instance.
SELECT out_instance_id AS instance_id, out_orchestration_name AS name, out_orchestration_version AS version,
    out_current_execution_id AS execution_id, out_status AS status, out_output AS output,
    (extract(epoch FROM out_created_at) * 1000)::bigint AS created_ms,
    (extract(epoch FROM out_updated_at) * 1000)::bigint AS updated_ms,
    out_parent_instance_id AS parent
FROM {schema}.get_instance_info($1)
