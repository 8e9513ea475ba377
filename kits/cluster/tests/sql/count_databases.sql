-- Tells whether a database is there.
SELECT count(*) FROM pg_database WHERE datname = '{name}'
