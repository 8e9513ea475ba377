-- Compatible function: lists all instances, newest first. Columns: out_instance_id.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.list_instances()
RETURNS TABLE(out_instance_id TEXT)
LANGUAGE sql STABLE AS $function$
    SELECT known.instance_id FROM {schema}.instances AS known ORDER BY known.ord DESC
$function$
