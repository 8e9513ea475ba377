-- Returns the next future time at which work becomes visible, a lease of work expires or a lease of a session
-- expires (S9); NULL if there is none. Costs one index lookup each (S20). p_leased and p_held are the floors
-- at which the scans of the leases start.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.next_work_moment(
    p_now BIGINT, p_leased BIGINT DEFAULT 0, p_held BIGINT DEFAULT 0
) RETURNS BIGINT
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    RETURN least(
        (
            SELECT w.visible_ms FROM {schema}.worker_queue AS w
            WHERE w.state = 0 AND w.visible_ms > p_now
            ORDER BY w.visible_ms LIMIT 1
        ),
        (
            SELECT w.locked_until FROM {schema}.worker_queue AS w
            WHERE w.state = 2 AND w.locked_until >= greatest(p_now + 1, p_leased)
            ORDER BY w.locked_until LIMIT 1
        ),
        (
            SELECT s.locked_until FROM {schema}.sessions AS s
            WHERE s.held AND s.locked_until >= greatest(p_now + 1, p_held)
            ORDER BY s.locked_until LIMIT 1
        )
    );
END
$function$
