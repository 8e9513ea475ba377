-- Records that a migration was applied.
INSERT INTO steadfast_migrations (version, hash) VALUES (?1, ?2)
