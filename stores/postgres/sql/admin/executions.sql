-- Lists the executions of an instance, ascending.
SELECT out_execution_id AS id FROM {schema}.list_executions($1)
