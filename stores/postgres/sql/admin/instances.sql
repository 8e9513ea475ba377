-- Lists all instances, newest first.
SELECT out_instance_id AS id FROM {schema}.list_instances()
