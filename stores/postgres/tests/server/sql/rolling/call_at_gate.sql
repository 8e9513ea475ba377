-- Calls the function, and waits at the table between looking it up and calling it.
SELECT d.doubled FROM {schema}.doubled($1) AS d, {schema}.gate
