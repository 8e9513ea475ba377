-- Ends the connections of those who sleep in a schema, and counts them.
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE query LIKE '%Asked in "{name}"%' AND application_name = 'steadfast' AND state = 'active'
