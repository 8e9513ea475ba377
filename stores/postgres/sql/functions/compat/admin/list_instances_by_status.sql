-- Compatible function: lists the instances whose current execution has the given status, newest first. An
-- unknown status gives no rows. They are found by their status and then sorted: a plan that reads them in
-- their order steps over the instances of every other status. Columns: out_instance_id.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.list_instances_by_status(p_status TEXT)
RETURNS TABLE(out_instance_id TEXT)
LANGUAGE sql STABLE
{planner}
AS $function$
    SELECT found.instance_id
    FROM (
        SELECT known.instance_id, known.ord FROM {schema}.instances AS known
        WHERE known.status = p_status OFFSET 0
    ) AS found
    ORDER BY found.ord DESC
$function$
