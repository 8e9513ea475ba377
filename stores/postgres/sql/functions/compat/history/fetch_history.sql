-- Compatible function: reads the events of the latest execution of an instance in the order of their ids
-- (S10). No rows if there are no events. Columns: out_event_data.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.fetch_history(p_instance_id TEXT)
RETURNS TABLE(out_event_data TEXT)
LANGUAGE sql STABLE AS $function$
    SELECT event.event_data FROM {schema}.history AS event
    WHERE event.instance_id = p_instance_id
        AND event.execution_id = {schema}.latest_execution_id(p_instance_id)
    ORDER BY event.event_id
$function$
