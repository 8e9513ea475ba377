-- Deletes an instance and all below it.
SELECT instances, executions, events, queued FROM {schema}.delete_instance($1, $2, $3, $4)
