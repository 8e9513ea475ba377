-- Lists the functions that were made, with the hashes of their files and the version that made them.
SELECT name, hash, made_by FROM {schema}.steadfast_functions
