-- Says that a migration was applied that nobody knows.
INSERT INTO {name}.steadfast_migrations (version, hash, made_by) VALUES (999, '?', '9.9.9')
