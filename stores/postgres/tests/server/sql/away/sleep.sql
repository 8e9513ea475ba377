-- Takes long, and can be found.
-- Asked in {schema}.
SELECT pg_sleep(60) AS sleeper
