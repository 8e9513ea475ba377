-- Returns the next future time at which a message becomes visible or a lease of an instance expires, NULL if
-- there is none. Costs two index lookups. p_leased: the floor at which the scan of the leases starts.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.next_turn_moment(p_now BIGINT, p_leased BIGINT DEFAULT 0) RETURNS BIGINT
LANGUAGE plpgsql STABLE
AS $function$
#variable_conflict use_column
BEGIN
    RETURN (
        SELECT least(
            (SELECT q.visible_ms FROM {schema}.orchestrator_queue AS q
                WHERE q.state = 0 AND q.visible_ms > p_now ORDER BY q.visible_ms LIMIT 1),
            (SELECT l.locked_until FROM {schema}.instance_locks AS l
                WHERE l.lock_token IS NOT NULL AND l.locked_until >= greatest(p_now + 1, p_leased)
                    ORDER BY l.locked_until LIMIT 1)
        )
    );
END
$function$
