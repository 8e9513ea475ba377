-- Finds the p_limit ready instances with the oldest messages (S18) that the caller can run, with one index
-- scan per pin. p_lo and p_hi are ranges of pins: NULL means all, empty arrays mean none; an instance without
-- a pin (-1) fits every range, and a routed pin is judged by its engine version. p_shut: routed pins to leave
-- out (S21). p_floor: the head at which the scans start.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.ready_turns(p_lo BIGINT[], p_hi BIGINT[], p_limit INTEGER,
    p_floor BIGINT DEFAULT 0, p_shut BIGINT[] DEFAULT NULL)
RETURNS TABLE (instance_id TEXT, head BIGINT, pin BIGINT)
LANGUAGE plpgsql STABLE ROWS 10
AS $function$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT oldest.instance_id, oldest.head, p.pin
    FROM {schema}.pins AS p
    CROSS JOIN LATERAL (
        SELECT l.instance_id, l.head FROM {schema}.instance_locks AS l
        WHERE l.lock_token IS NULL AND l.head IS NOT NULL AND l.pin = p.pin AND l.head >= p_floor
        ORDER BY l.head LIMIT p_limit
    ) AS oldest
    WHERE (p_lo IS NULL
        OR (SELECT 1 FROM unnest(p_lo, p_hi) AS r (lo, hi)
            WHERE coalesce(p.version, p.pin) = -1 OR coalesce(p.version, p.pin) BETWEEN r.lo AND r.hi
            LIMIT 1) = 1)
      AND (p_shut IS NULL OR p.pin <> ALL (p_shut))
    ORDER BY oldest.head LIMIT p_limit;
END
$function$
