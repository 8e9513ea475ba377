-- Compatible function: appends events to an execution without a lease and changes nothing else (S8).
-- p_history_delta: array of {event_id, event_type, event_data}, where event_data is the event as text. Raises
-- SF010 if an event lacks a field, and SF009 if an event id exists already.
-- Locks: those of append_events.
CREATE OR REPLACE FUNCTION {schema}.append_history(
    p_instance_id TEXT, p_execution_id BIGINT, p_history_delta JSONB, p_now_ms BIGINT DEFAULT NULL
) RETURNS VOID
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    v_events RECORD;
BEGIN
    PERFORM {schema}.check_history_delta(p_history_delta);
    v_events := {schema}.events_of_delta(p_history_delta);
    PERFORM 1 FROM {schema}.append_events(
        ARRAY[p_instance_id], ARRAY[p_execution_id], v_events.ones, v_events.ids, v_events.kinds,
        v_events.texts, p_now_ms
    ) AS t
    WHERE t.code = 'ok';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'Event id already exists in execution % of instance ''%''', p_execution_id,
            p_instance_id
            USING ERRCODE = 'SF009';
    END IF;
END
$function$
