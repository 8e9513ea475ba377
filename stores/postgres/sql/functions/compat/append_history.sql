-- Appends events to an execution without a lease; nothing else changes (S8). p_history_delta is an array of
-- {event_id, event_type, event_data}, event_data being the event as text.
-- Raises SF010 for an event without an id above 0, SF009 for an id that is there already.
-- Locks: none but the new rows.
CREATE OR REPLACE FUNCTION {schema}.append_history(
    p_instance_id TEXT, p_execution_id BIGINT, p_history_delta JSONB, p_now_ms BIGINT DEFAULT NULL
)
RETURNS VOID
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    v_now   TIMESTAMPTZ := to_timestamp(least({schema}.now_ms(p_now_ms), 9000000000000000) / 1000.0);
    v_given BIGINT := jsonb_array_length(coalesce(p_history_delta, '[]'));
    v_added BIGINT;
BEGIN
    PERFORM {schema}.check_history_delta(p_history_delta);
    INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data, created_at)
    SELECT p_instance_id, p_execution_id, (event->>'event_id')::BIGINT, event->>'event_type', event->>'event_data', v_now
    FROM jsonb_array_elements(coalesce(p_history_delta, '[]')) WITH ORDINALITY AS delta(event, place)
    ORDER BY delta.place
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS v_added = ROW_COUNT;
    IF v_added <> v_given THEN
        RAISE EXCEPTION 'Event id already exists in execution % of instance ''%''', p_execution_id, p_instance_id
            USING ERRCODE = 'SF009';
    END IF;
END;
$function$
