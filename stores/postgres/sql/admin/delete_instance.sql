-- Deletes an instance and all its descendants.
SELECT instances, executions, events, queued FROM {schema}.delete_instance($1, $2, $3, $4)
