-- Lists the functions that were made in a schema.
SELECT name FROM {name}.steadfast_functions
