-- Deletes old executions of the instances that match a filter.
SELECT instances, executions, events FROM {schema}.prune_executions_bulk($1, $2, $3, $4, $5)
