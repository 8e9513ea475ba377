-- Deletes exactly the given instances, all or none.
SELECT out_instances_deleted AS instances, out_executions_deleted AS executions, out_events_deleted AS events,
    out_queue_messages_deleted AS queued
FROM {schema}.delete_instances_atomic($1, $2, $3, $4)
