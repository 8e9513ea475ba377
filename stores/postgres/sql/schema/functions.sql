-- Lists the functions that the store created in this schema, with their parameters, the hashes of their files
-- and the version that created them. Locks: none.
SELECT name, arguments, hash, made_by FROM {schema}.steadfast_functions
