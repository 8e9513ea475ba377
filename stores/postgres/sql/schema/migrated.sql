-- Records that a migration was applied.
INSERT INTO {schema}.steadfast_migrations (version, hash, made_by) VALUES ($1, $2, $3)
