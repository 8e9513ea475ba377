-- Counts the locks that a connection waits for.
SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = {pid}
