-- Lists an instance and all its descendants, the root first.
SELECT instance_id AS id FROM {schema}.instance_tree($1)
