-- Removes the row of an id that nothing refers to any more.
-- Locks: none; the caller has locked the instance.
CREATE OR REPLACE FUNCTION {schema}.forget_instance(p_instance TEXT) RETURNS VOID
LANGUAGE plpgsql
SET enable_seqscan TO off
AS $function$
#variable_conflict use_column
BEGIN
    DELETE FROM {schema}.instance_locks AS l
    WHERE l.instance_id = p_instance
      AND NOT EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = p_instance)
      AND NOT EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = p_instance AND q.state = 0)
      AND NOT EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = p_instance AND q.state = 1)
      AND NOT EXISTS (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = p_instance)
      AND NOT EXISTS (SELECT 1 FROM {schema}.executions AS e WHERE e.instance_id = p_instance)
      AND NOT EXISTS (SELECT 1 FROM {schema}.worker_queue AS w WHERE w.instance_id = p_instance);
END
$function$
