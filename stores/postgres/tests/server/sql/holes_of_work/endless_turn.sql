-- Leases an instance for nobody knows how long.
SELECT * FROM {name}.fetch_orchestration_item(NULL, NULL)
