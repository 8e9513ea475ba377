-- Compatible function: lists the instances whose current execution has the given status, newest first. An
-- unknown status gives no rows. Columns: out_instance_id.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.list_instances_by_status(p_status TEXT)
RETURNS TABLE(out_instance_id TEXT)
LANGUAGE sql STABLE AS $function$
    SELECT known.instance_id FROM {schema}.instances AS known WHERE known.status = p_status
        ORDER BY known.ord DESC
$function$
