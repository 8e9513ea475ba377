-- Counts activities that are not leased.
SELECT count(*) AS waiting FROM {schema}.worker_queue AS w
WHERE NOT (w.state = 2 AND w.locked_until > {schema}.now_ms($1))
