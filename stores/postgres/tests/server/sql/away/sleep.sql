-- Takes long, and can be found.
-- Asked in {schema}.
SELECT pg_sleep(600) AS sleeper
