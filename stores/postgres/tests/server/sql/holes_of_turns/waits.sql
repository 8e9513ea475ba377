-- Tells whether that one waits for a lock.
SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = {pid}
