-- Counts those who wait to go on looking.
SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{name}.pins'::regclass
