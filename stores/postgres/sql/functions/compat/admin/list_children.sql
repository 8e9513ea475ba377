-- Compatible function: lists the direct children of an instance in the order of their ids. No rows if the
-- instance does not exist. Columns: out_instance_id.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.list_children(p_instance_id TEXT)
RETURNS TABLE(out_instance_id TEXT)
LANGUAGE sql STABLE AS $function$
    SELECT child.instance_id FROM {schema}.instances AS child
    WHERE child.parent_instance_id = p_instance_id ORDER BY child.instance_id
$function$
