-- Deletes the `instance_locks` rows of instances that have no other row left: no instance, message, history,
-- execution or work.
-- Locks: none. The caller has locked `instance_locks` of the given instances.
CREATE OR REPLACE FUNCTION {schema}.forget_instances(p_instances TEXT[]) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    DELETE FROM {schema}.instance_locks AS l
    WHERE l.instance_id = ANY (p_instances)
      AND coalesce(
          (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = l.instance_id),
          (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = l.instance_id AND q.state = 0
              LIMIT 1),
          (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = l.instance_id AND q.state = 1
              LIMIT 1),
          (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = l.instance_id LIMIT 1),
          (SELECT 1 FROM {schema}.executions AS e WHERE e.instance_id = l.instance_id LIMIT 1),
          (SELECT 1 FROM {schema}.worker_queue AS w WHERE w.instance_id = l.instance_id LIMIT 1)
      ) IS NULL;
END
$function$
