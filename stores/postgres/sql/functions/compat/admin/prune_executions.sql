-- Compatible function: deletes old executions of an instance. It never deletes the current execution, a
-- running one, or one of the p_keep_last highest ids (NULL, 0 and 1 keep one). With p_completed_before_ms it
-- deletes only executions that ended before this time. Raises SF007 if the instance does not exist. Columns:
-- out_instances_processed, out_executions_deleted, out_events_deleted.
-- Locks: `instance_locks` of the instance.
CREATE OR REPLACE FUNCTION {schema}.prune_executions(
    p_instance_id TEXT, p_keep_last INTEGER, p_completed_before_ms BIGINT
)
RETURNS TABLE(out_instances_processed BIGINT, out_executions_deleted BIGINT, out_events_deleted BIGINT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
BEGIN
    IF NOT EXISTS (SELECT 1 FROM {schema}.instances AS known WHERE known.instance_id = p_instance_id) THEN
        RAISE EXCEPTION 'instance ''%'' was not found', p_instance_id USING ERRCODE = 'SF007';
    END IF;
    RETURN QUERY SELECT * FROM {schema}.prune_instances(ARRAY[p_instance_id], p_keep_last,
        p_completed_before_ms);
END
$function$
