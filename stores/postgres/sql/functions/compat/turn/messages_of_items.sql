-- Converts a JSON array of messages to arguments of commit_turns for one commit. A TimerFired becomes visible
-- at its fire_at_ms, every other message at once. A message that names no instance is sent to p_instance.
-- `parents`, `parent_executions` and `parent_events` name the calls of parents that starts of children and
-- answers belong to. Raises SF012 if an element is an activity.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.messages_of_items(
    p_items JSONB, p_instance TEXT, OUT ones INTEGER[], OUT instances TEXT[], OUT items TEXT[],
    OUT visible BIGINT[],
    OUT starts BOOLEAN[], OUT traceparents TEXT[], OUT parents TEXT[], OUT parent_executions BIGINT[],
    OUT parent_events BIGINT[]
)
LANGUAGE plpgsql IMMUTABLE AS $function$
#variable_conflict use_column
BEGIN
    IF EXISTS (
        SELECT 1 FROM jsonb_array_elements(coalesce(nullif(p_items, 'null'), '[]')) AS i (item)
            WHERE i.item ? 'ActivityExecute'
    ) THEN
        RAISE EXCEPTION 'ActivityExecute belongs into the worker queue only' USING ERRCODE = 'SF012';
    END IF;
    SELECT coalesce(array_agg(1), '{}'),
        coalesce(array_agg(coalesce({schema}.instance_of_item(m.item), p_instance) ORDER BY m.place), '{}'),
        coalesce(array_agg(m.text ORDER BY m.place), '{}'),
        coalesce(array_agg(nullif((m.item->'TimerFired'->>'fire_at_ms')::BIGINT, 0) ORDER BY m.place), '{}'),
        coalesce(array_agg({schema}.starts_an_execution(m.item) ORDER BY m.place), '{}'),
        coalesce(array_agg(NULL::TEXT), '{}'),
        coalesce(array_agg(m.call->>'parent_instance' ORDER BY m.place), '{}'),
        coalesce(array_agg((m.call->>'parent_execution_id')::BIGINT ORDER BY m.place), '{}'),
        coalesce(array_agg((m.call->>'parent_id')::BIGINT ORDER BY m.place), '{}')
    INTO ones, instances, items, visible, starts, traceparents, parents, parent_executions, parent_events
    FROM (
        SELECT i.text, i.item, i.place,
            coalesce(i.item->'StartOrchestration', i.item->'SubOrchCompleted',
                i.item->'SubOrchFailed') AS call
        FROM (
            SELECT i.item::TEXT AS text, {schema}.item_of(i.item::TEXT) AS item, i.place
            FROM jsonb_array_elements(coalesce(nullif(p_items, 'null'), '[]'))
                WITH ORDINALITY AS i (item, place)
        ) AS i
    ) AS m;
END
$function$
