-- Compatible function: returns the parent of an instance, NULL for a root. No row if the instance does not
-- exist. Columns: out_parent_instance_id.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.get_parent_id(p_instance_id TEXT)
RETURNS TABLE(out_parent_instance_id TEXT)
LANGUAGE sql STABLE AS $function$
    SELECT known.parent_instance_id FROM {schema}.instances AS known WHERE known.instance_id = p_instance_id
$function$
