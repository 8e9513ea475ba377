-- Tells since when the oldest runnable things wait (S18).
SELECT * FROM {schema}.oldest_waiting($1)
