-- Names the parent of an instance, NULL for a root; no row when there is none of that id.
-- Columns: out_parent_instance_id.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.get_parent_id(p_instance_id TEXT)
RETURNS TABLE(out_parent_instance_id TEXT)
LANGUAGE sql STABLE AS $function$
    SELECT known.parent_instance_id FROM {schema}.instances AS known WHERE known.instance_id = p_instance_id
$function$
