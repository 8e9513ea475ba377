-- Counts the rows of ids.
SELECT count(*) FROM {name}.instance_locks
