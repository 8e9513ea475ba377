-- Converts a JSON array of activities to arguments of commit_turns for one commit. Raises SF011 if an element
-- is no activity.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.work_of_items(
    p_items JSONB, OUT ones INTEGER[], OUT items TEXT[], OUT instances TEXT[], OUT executions BIGINT[],
    OUT activities BIGINT[],
    OUT tags TEXT[], OUT scopes TEXT[], OUT sessions TEXT[], OUT traceparents TEXT[]
)
LANGUAGE plpgsql IMMUTABLE AS $function$
#variable_conflict use_column
BEGIN
    SELECT coalesce(array_agg(1), '{}'),
        coalesce(array_agg(w.text ORDER BY w.place), '{}'),
        coalesce(array_agg(w.activity->>'instance' ORDER BY w.place), '{}'),
        coalesce(array_agg((w.activity->>'execution_id')::BIGINT ORDER BY w.place), '{}'),
        coalesce(array_agg((w.activity->>'id')::BIGINT ORDER BY w.place), '{}'),
        coalesce(array_agg(coalesce(':' || (w.activity->>'tag'), '') ORDER BY w.place), '{}'),
        coalesce(array_agg(''::TEXT), '{}'),
        coalesce(array_agg(w.activity->>'session_id' ORDER BY w.place), '{}'),
        coalesce(array_agg(NULL::TEXT), '{}')
    INTO ones, items, instances, executions, activities, tags, scopes, sessions, traceparents
    FROM (
        SELECT i.item::TEXT AS text, {schema}.item_of(i.item::TEXT)->'ActivityExecute' AS activity, i.place
        FROM jsonb_array_elements(coalesce(nullif(p_items, 'null'), '[]')) WITH ORDINALITY AS i (item, place)
    ) AS w;
    IF array_position(instances, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'Only ActivityExecute belongs into the worker queue' USING ERRCODE = 'SF011';
    END IF;
END
$function$
