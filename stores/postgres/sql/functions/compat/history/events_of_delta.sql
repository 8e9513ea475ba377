-- Converts a history delta to arguments of commit_turns for one commit.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.events_of_delta(
    p_history_delta JSONB, OUT ones INTEGER[], OUT ids BIGINT[], OUT kinds TEXT[], OUT texts TEXT[]
)
LANGUAGE sql IMMUTABLE AS $function$
    SELECT coalesce(array_agg(1), '{}'),
        coalesce(array_agg((e.event->>'event_id')::BIGINT ORDER BY e.place), '{}'),
        coalesce(array_agg(e.event->>'event_type' ORDER BY e.place), '{}'),
        coalesce(array_agg(e.event->>'event_data' ORDER BY e.place), '{}')
    FROM jsonb_array_elements(coalesce(nullif(p_history_delta, 'null'), '[]'))
        WITH ORDINALITY AS e (event, place)
$function$
