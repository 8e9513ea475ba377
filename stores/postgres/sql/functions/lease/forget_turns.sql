-- Forgets the expired leases of instances whose messages are gone.
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.forget_turns(p_instances TEXT[]) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    DELETE FROM {schema}.ended_leases AS e
    WHERE e.instance_id = ANY (p_instances)
      AND (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.id = ANY (e.messages) LIMIT 1) IS NULL;
    UPDATE {schema}.instance_locks AS l SET has_expired = false
    WHERE l.instance_id = ANY (p_instances)
      AND (SELECT 1 FROM {schema}.ended_leases AS e WHERE e.instance_id = l.instance_id LIMIT 1) IS NULL;
END
$function$
