-- Compatible function: counts instances with a row, in total and by the status of their current execution,
-- and all executions and events. Columns: out_total_instances, out_total_executions, out_running_instances,
-- out_completed_instances, out_failed_instances, out_total_events.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.get_system_metrics()
RETURNS TABLE(
    out_total_instances BIGINT, out_total_executions BIGINT, out_running_instances BIGINT,
    out_completed_instances BIGINT, out_failed_instances BIGINT, out_total_events BIGINT
)
LANGUAGE sql STABLE AS $function$
    SELECT count(*),
        (SELECT count(*) FROM {schema}.executions),
        count(*) FILTER (WHERE known.status = 'Running'),
        count(*) FILTER (WHERE known.status = 'Completed'),
        count(*) FILTER (WHERE known.status = 'Failed'),
        (SELECT count(*) FROM {schema}.history)
    FROM {schema}.instances AS known
$function$
