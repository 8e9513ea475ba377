-- Marks the messages of timers that the code does not await any more (p_items, with the times at which they
-- are due): they fire, and are not told of. p_of is the place of the instance in p_instances, which is NULL
-- for a refused commit.
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.drop_timers(
    p_instances TEXT[], p_of INTEGER[], p_items TEXT[], p_due BIGINT[]
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    UPDATE {schema}.orchestrator_queue AS q SET dropped = true
    FROM (
        SELECT found.row FROM unnest(p_of, p_items, p_due) AS timer (of, item, due)
        CROSS JOIN unnest(ARRAY[0, 1]) AS s (state)
        CROSS JOIN LATERAL (
            SELECT q.ctid AS row FROM {schema}.orchestrator_queue AS q
            WHERE q.instance_id = p_instances[timer.of] AND q.state + 0 = s.state
              AND coalesce(q.due_ms, q.visible_ms) = timer.due AND q.work_item = timer.item
        ) AS found
    ) AS found
    WHERE q.ctid = found.row;
END
$function$
