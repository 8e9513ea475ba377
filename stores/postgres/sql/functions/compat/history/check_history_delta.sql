-- Raises SF010 if an event of a history delta has no id above 0, no type or no data.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.check_history_delta(p_history_delta JSONB) RETURNS VOID
LANGUAGE plpgsql IMMUTABLE AS $function$
#variable_conflict use_column
BEGIN
    IF EXISTS (
        SELECT 1 FROM jsonb_array_elements(coalesce(nullif(p_history_delta, 'null'), '[]')) AS e (event)
        WHERE coalesce((e.event->>'event_id')::BIGINT, 0) <= 0
           OR e.event->>'event_type' IS NULL
           OR e.event->>'event_data' IS NULL
    ) THEN
        RAISE EXCEPTION
            'Each event of a history delta needs an event_id above 0, an event_type and event_data'
            USING ERRCODE = 'SF010';
    END IF;
END
$function$
