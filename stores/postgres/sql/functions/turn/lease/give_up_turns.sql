-- Ends expired leases of instances. Their messages are ready again, with one delivery more, and the leases
-- are remembered, so that their holders can excuse them (S5).
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.give_up_turns(p_instances TEXT[], p_now BIGINT) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    PERFORM {schema}.remember_turns(p_instances, p_now);
    UPDATE {schema}.orchestrator_queue AS q
    SET attempt_count = q.attempt_count + 1
    WHERE q.id = ANY (ARRAY(
        SELECT unnest(l.leased)
        FROM unnest(p_instances) AS i (id)
        CROSS JOIN LATERAL (
            SELECT l.leased FROM {schema}.instance_locks AS l WHERE l.instance_id = i.id OFFSET 0
        ) AS l
    ));
    PERFORM {schema}.free_turns(p_instances, p_now, NULL, true);
END
$function$
