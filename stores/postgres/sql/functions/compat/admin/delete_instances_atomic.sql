-- Compatible function: deletes exactly the given instances, all or none. Checks and deletion are one
-- transaction. Raises SF005 if one of them is alive and p_force is not set, and SF006, even with p_force, if
-- a child of one of them is not in the list. An empty list does nothing.
-- Columns: out_instances_deleted, out_executions_deleted, out_events_deleted, out_queue_messages_deleted.
-- Locks: `instance_locks` of the given instances in the order of instance_id, then the locks of
-- erase_instances.
CREATE OR REPLACE FUNCTION {schema}.delete_instances_atomic(
    p_instance_ids TEXT[], p_force BOOLEAN,
    p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL, p_now_ms BIGINT DEFAULT NULL
)
RETURNS TABLE(
    out_instances_deleted BIGINT, out_executions_deleted BIGINT, out_events_deleted BIGINT,
    out_queue_messages_deleted BIGINT
)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
BEGIN
    PERFORM {schema}.lock_instances(p_instance_ids);
    PERFORM {schema}.refuse_deletion(p_instance_ids, p_force);
    RETURN QUERY SELECT * FROM {schema}.erase_instances(p_instance_ids, p_now_ms);
    PERFORM {schema}.notify(p_notify, p_me);
END
$function$
