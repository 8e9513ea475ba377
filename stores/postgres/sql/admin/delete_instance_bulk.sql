-- Deletes roots that have ended, each with all its descendants.
SELECT instances, executions, events, queued, deleted FROM {schema}.delete_instance_bulk($1, $2, $3, $4, $5)
