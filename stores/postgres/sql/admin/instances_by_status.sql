-- Lists the instances whose current execution has a status, newest first.
SELECT out_instance_id AS id FROM {schema}.list_instances_by_status($1)
