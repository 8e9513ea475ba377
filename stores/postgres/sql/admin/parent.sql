-- Returns the parent of an instance.
SELECT out_parent_instance_id AS id FROM {schema}.get_parent_id($1)
