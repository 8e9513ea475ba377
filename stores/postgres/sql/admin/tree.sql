-- Lists an instance and all below it, the root first.
SELECT instance_id AS id FROM {schema}.instance_tree($1)
