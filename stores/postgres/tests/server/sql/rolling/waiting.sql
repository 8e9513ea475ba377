-- Counts who waits at the table.
SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{name}.gate'::regclass
