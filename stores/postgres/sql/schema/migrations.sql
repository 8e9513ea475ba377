-- Lists the migrations that were applied. Locks: none.
SELECT version, hash FROM {schema}.steadfast_migrations ORDER BY version
