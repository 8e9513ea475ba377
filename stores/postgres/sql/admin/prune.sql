-- Deletes old executions of an instance.
SELECT out_instances_processed AS instances, out_executions_deleted AS executions, out_events_deleted AS events
FROM {schema}.prune_executions($1, $2, $3)
