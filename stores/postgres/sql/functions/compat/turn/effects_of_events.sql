-- Reads from the events of a turn what they change besides the history: the failure, the custom status (the
-- last event counts), key-value state (the last event of each key counts, and only events after the last
-- KeyValuesCleared), and sessions. Events that are not valid JSON change nothing.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.effects_of_events(
    p_events TEXT[],
    OUT failure TEXT, OUT shows BOOLEAN, OUT custom_status TEXT, OUT kv_clears BOOLEAN,
    OUT kv_ones INTEGER[], OUT kv_keys TEXT[], OUT kv_values TEXT[], OUT kv_updated BIGINT[],
    OUT session_ones INTEGER[], OUT session_ops TEXT[], OUT session_ids TEXT[], OUT session_idle BIGINT[],
    OUT session_serial BOOLEAN[]
)
LANGUAGE plpgsql IMMUTABLE AS $function$
#variable_conflict use_column
DECLARE
    v_events JSONB[] := ARRAY(
        SELECT {schema}.item_of(e.text) FROM unnest(p_events) WITH ORDINALITY AS e (text, place)
            ORDER BY e.place
    );
    v_cleared BIGINT;
BEGIN
    SELECT (e.event->'details')::TEXT INTO failure
    FROM unnest(v_events) WITH ORDINALITY AS e (event, place)
    WHERE e.event->>'type' = 'OrchestrationFailed' ORDER BY e.place LIMIT 1;

    SELECT true, e.event->>'status' INTO shows, custom_status
    FROM unnest(v_events) WITH ORDINALITY AS e (event, place)
    WHERE e.event->>'type' = 'CustomStatusUpdated' ORDER BY e.place DESC LIMIT 1;
    shows := coalesce(shows, false);

    SELECT max(e.place) INTO v_cleared
    FROM unnest(v_events) WITH ORDINALITY AS e (event, place) WHERE e.event->>'type' = 'KeyValuesCleared';
    kv_clears := v_cleared IS NOT NULL;
    SELECT coalesce(array_agg(1), '{}'), coalesce(array_agg(k.key), '{}'), coalesce(array_agg(k.value), '{}'),
        coalesce(array_agg(k.updated), '{}')
    INTO kv_ones, kv_keys, kv_values, kv_updated
    FROM (
        SELECT DISTINCT ON (e.event->>'key') e.event->>'key' AS key,
            CASE WHEN e.event->>'type' = 'KeyValueSet' THEN e.event->>'value' END AS value,
            CASE WHEN e.event->>'type' = 'KeyValueSet'
                THEN coalesce((e.event->>'last_updated_at_ms')::BIGINT, 0) ELSE 0 END AS updated
        FROM unnest(v_events) WITH ORDINALITY AS e (event, place)
        WHERE e.event->>'type' IN ('KeyValueSet', 'KeyValueCleared') AND e.place > coalesce(v_cleared, 0)
        ORDER BY e.event->>'key', e.place DESC
    ) AS k;

    SELECT coalesce(array_agg(1), '{}'), coalesce(array_agg(s.op ORDER BY s.place), '{}'),
        coalesce(array_agg(s.event->>'session_id' ORDER BY s.place), '{}'),
        coalesce(array_agg((s.event->>'idle_timeout_ms')::BIGINT ORDER BY s.place), '{}'),
        coalesce(array_agg(coalesce(s.event->>'concurrency' = 'serial', false) ORDER BY s.place), '{}')
    INTO session_ones, session_ops, session_ids, session_idle, session_serial
    FROM (
        SELECT e.event, e.place, CASE e.event->>'type'
            WHEN 'SessionOpened' THEN 'open'
            WHEN 'SessionClosed' THEN 'close'
            WHEN 'OrchestrationCompleted' THEN 'end'
            WHEN 'OrchestrationFailed' THEN 'end'
        END AS op
        FROM unnest(v_events) WITH ORDINALITY AS e (event, place)
    ) AS s
    WHERE s.op IS NOT NULL;
END
$function$
