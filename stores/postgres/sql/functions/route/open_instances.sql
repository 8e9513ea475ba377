-- Takes the routes of instances away, because they got messages that need no code: any worker can take the
-- turn (S21).
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.open_instances(p_instances TEXT[]) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    UPDATE {schema}.instance_locks AS l
    SET pin = coalesce((SELECT p.version FROM {schema}.pins AS p WHERE p.pin = l.pin), -1)
    WHERE l.instance_id = ANY (p_instances) AND l.pin + 0 < -1;
END
$function$
