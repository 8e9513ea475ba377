-- Lists the functions that were made, with the hashes of their files.
SELECT name, hash FROM {schema}.steadfast_functions
