-- Takes long, and can be found.
SELECT pg_sleep(60) AS sleeper
