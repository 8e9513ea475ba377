-- Finds the latest execution of an instance.
SELECT {schema}.latest_execution_id($1) AS id
