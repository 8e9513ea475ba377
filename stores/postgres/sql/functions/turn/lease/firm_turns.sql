-- Returns those of the given instances that can be leased, in the given order: those that have a row, a
-- history or a ready start. The others are strays, or wait for a delayed start (S2, S17).
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.firm_turns(p_instances TEXT[]) RETURNS TEXT[]
LANGUAGE plpgsql STABLE
AS $function$
#variable_conflict use_column
BEGIN
    RETURN (
        SELECT coalesce(array_agg(t.id ORDER BY t.place), '{}')
        FROM unnest(p_instances) WITH ORDINALITY AS t (id, place)
        WHERE coalesce(
            (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = t.id),
            (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = t.id AND q.starts
                AND q.state = 1 LIMIT 1),
            (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = t.id LIMIT 1)
        ) = 1
    );
END
$function$
