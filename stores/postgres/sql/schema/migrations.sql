-- Lists the migrations that were applied.
SELECT version, hash FROM {schema}.steadfast_migrations ORDER BY version
