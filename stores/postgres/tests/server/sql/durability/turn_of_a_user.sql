-- Leases a turn, as a transaction of somebody else may.
SELECT out_instance_id FROM {name}.fetch_orchestration_item(NULL, 30000)
