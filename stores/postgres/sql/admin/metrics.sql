-- Counts instances by status, executions and events.
SELECT out_total_instances AS instances, out_total_executions AS executions, out_running_instances AS running,
    out_completed_instances AS completed, out_failed_instances AS failed, out_total_events AS events
FROM {schema}.get_system_metrics()
