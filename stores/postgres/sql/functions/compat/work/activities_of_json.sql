-- Converts a JSON array of work to withdraw, {instance, execution_id, activity_id} each, to arguments of
-- commit_turns for one commit.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.activities_of_json(
    p_activities JSONB, OUT ones INTEGER[], OUT instances TEXT[], OUT executions BIGINT[],
    OUT activities BIGINT[]
)
LANGUAGE sql IMMUTABLE AS $function$
    SELECT coalesce(array_agg(1), '{}'),
        coalesce(array_agg({schema}.item_of(a.activity::TEXT)->>'instance' ORDER BY a.place), '{}'),
        coalesce(array_agg((a.activity->>'execution_id')::BIGINT ORDER BY a.place), '{}'),
        coalesce(array_agg((a.activity->>'activity_id')::BIGINT ORDER BY a.place), '{}')
    FROM jsonb_array_elements(coalesce(nullif(p_activities, 'null'), '[]'))
        WITH ORDINALITY AS a (activity, place)
$function$
