-- Describes an execution.
SELECT out_execution_id AS execution_id, out_status AS status, out_output AS output,
    (extract(epoch FROM out_started_at) * 1000)::bigint AS started_ms,
    (extract(epoch FROM out_completed_at) * 1000)::bigint AS completed_ms,
    out_event_count AS events
FROM {schema}.get_execution_info($1, $2)
