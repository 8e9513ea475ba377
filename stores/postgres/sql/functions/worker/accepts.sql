-- Tells whether a worker accepts what needs one of its handlers (S21), by the columns of its row in
-- `workers`: the tag of work (p_tag, NULL for a turn), a session (p_on_session), the engine version of a turn
-- (p_pin, a pin without a route, -1 for no version; NULL for work).
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.accepts(
    p_tags TEXT[], p_serves_sessions BOOLEAN, p_engine_lo BIGINT[], p_engine_hi BIGINT[],
    p_tag TEXT, p_on_session BOOLEAN, p_pin BIGINT
) RETURNS BOOLEAN
LANGUAGE sql IMMUTABLE AS $function$
    SELECT (p_tag IS NULL OR p_tags IS NULL OR p_tag = ANY (p_tags))
        AND (p_serves_sessions OR NOT p_on_session)
        AND (p_pin IS NULL OR p_engine_lo IS NULL OR EXISTS (
            SELECT 1 FROM unnest(p_engine_lo, p_engine_hi) AS r (lo, hi)
            WHERE p_pin = -1 OR p_pin BETWEEN r.lo AND r.hi
        ))
$function$
