-- Lists the direct children of an instance.
SELECT out_instance_id AS id FROM {schema}.list_children($1)
