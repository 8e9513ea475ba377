-- Leases an activity for nobody knows how long.
SELECT * FROM {name}.fetch_work_item(NULL, NULL)
