-- Returns the next time at which a live worker has been silent for a minute unless it reports, NULL if there is
-- none: work that is routed to it may go to other workers then (S21).
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.next_silence(p_now BIGINT) RETURNS BIGINT
LANGUAGE plpgsql STABLE
AS $function$
#variable_conflict use_column
DECLARE
    v_live_ms CONSTANT BIGINT := 60000;
BEGIN
    RETURN v_live_ms + (
        SELECT w.last_seen_ms FROM {schema}.workers AS w
        WHERE w.is_listed AND w.last_seen_ms > p_now - v_live_ms
        ORDER BY w.last_seen_ms LIMIT 1
    );
END
$function$
