-- Deletes what ended early.
SELECT deleted FROM {name}.delete_instance_bulk(NULL, 10000, 10)
