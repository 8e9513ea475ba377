-- Finds the newest migration that was applied.
SELECT max(version) FROM steadfast_migrations
