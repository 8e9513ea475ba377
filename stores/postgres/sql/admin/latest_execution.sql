-- Returns the highest execution id of an instance.
SELECT {schema}.latest_execution_id($1) AS id
