-- Notes that a migration was applied.
INSERT INTO {schema}.steadfast_migrations (version, hash) VALUES ($1, $2)
