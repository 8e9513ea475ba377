-- Counts the notes about migrations.
SELECT count(*) FROM {name}.steadfast_migrations
