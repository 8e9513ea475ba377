-- Lists the functions that were made, with their parameters, the hashes of their files and the version that made them.
SELECT name, arguments, hash, made_by FROM {schema}.steadfast_functions
