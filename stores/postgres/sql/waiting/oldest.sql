-- Returns since when the instance and the work that have waited longest could have been leased (S18).
SELECT * FROM {schema}.oldest_waiting($1)
