-- Returns, for each message of commits, the life of the parent whose call it belongs to (S17); NULL for a
-- message that belongs to none. The start of a child has the life of the instance that sends it. An answer
-- has the life of the start that it answers: of one among the leased messages (p_met_...), or of the start
-- that made the instance. p_instances: the instances of the commits, by their numbers in p_of.
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.lives_of_messages(
    p_instances TEXT[], p_of INTEGER[], p_starts BOOLEAN[], p_parents TEXT[], p_executions BIGINT[],
    p_events BIGINT[], p_met_instances TEXT[], p_met_parents TEXT[], p_met_lives BIGINT[],
    p_met_executions BIGINT[], p_met_events BIGINT[]
) RETURNS BIGINT[]
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    RETURN ARRAY(
        SELECT CASE
            WHEN m.parent IS NULL THEN NULL
            WHEN m.starts THEN (
                SELECT i.ord FROM {schema}.instances AS i
                WHERE i.instance_id = m.parent AND m.parent = p_instances[m.of]
            )
            ELSE coalesce(
                (
                    SELECT met.life
                    FROM unnest(p_met_instances, p_met_parents, p_met_lives, p_met_executions, p_met_events)
                        AS met (instance_id, parent, life, execution, event)
                    WHERE met.instance_id = p_instances[m.of] AND met.parent = m.parent
                      AND met.event = m.event AND coalesce(met.execution = m.execution, true)
                    LIMIT 1
                ),
                (
                    SELECT i.parent_life FROM {schema}.instances AS i
                    WHERE i.instance_id = p_instances[m.of] AND i.parent_instance_id = m.parent
                )
            )
        END
        FROM unnest(p_of, p_starts, p_parents, p_executions, p_events)
            WITH ORDINALITY AS m (of, starts, parent, execution, event, place)
        ORDER BY m.place
    );
END
$function$
