-- Compatible function: sends a message to an instance. It becomes visible at p_visible_at, or at once if that
-- is NULL (S7, S9). The parameters for orchestration name, version and execution are accepted and ignored:
-- the first commit of the instance sets them.
-- Locks: `instance_locks` of the instance.
CREATE OR REPLACE FUNCTION {schema}.enqueue_orchestrator_work(
    p_instance_id TEXT, p_work_item TEXT, p_visible_at TIMESTAMPTZ DEFAULT NULL,
    p_orchestration_name TEXT DEFAULT NULL,
    p_orchestration_version TEXT DEFAULT NULL, p_execution_id BIGINT DEFAULT NULL,
    p_now_ms BIGINT DEFAULT NULL, p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL
) RETURNS VOID
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
BEGIN
    PERFORM {schema}.lock_instances(ARRAY[p_instance_id]);
    PERFORM {schema}.queue_messages(
        ARRAY[p_instance_id], ARRAY[p_work_item],
        ARRAY[ceil(extract(epoch FROM p_visible_at) * 1000)::BIGINT],
        ARRAY[{schema}.starts_an_execution({schema}.item_of(p_work_item))], ARRAY[NULL]::TEXT[],
        {schema}.now_ms(p_now_ms)
    );
    PERFORM {schema}.notify(coalesce(p_notify, {schema}.everything()), p_me);
END
$function$
