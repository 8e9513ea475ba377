-- Tells whether an instance is ready, or a message or lease is due that no sweep has moved yet, because its
-- row is locked or beyond the bound of a sweep. Reads indexes only. p_lo and p_hi are ranges of pins and
-- p_shut pins to leave out, see ready_turns. p_floor, p_due and p_leased are the floors: the keys at which the
-- index scans start.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.has_turn(
    p_now BIGINT, p_lo BIGINT[] DEFAULT NULL, p_hi BIGINT[] DEFAULT NULL,
    p_floor BIGINT DEFAULT 0, p_due BIGINT DEFAULT 0, p_leased BIGINT DEFAULT 0,
    p_shut BIGINT[] DEFAULT NULL
) RETURNS BOOLEAN
LANGUAGE plpgsql STABLE
AS $function$
#variable_conflict use_column
BEGIN
    RETURN (
        SELECT coalesce(
            (
                SELECT 1 FROM {schema}.pins AS p
                WHERE (
                    p_lo IS NULL
                    OR (SELECT 1 FROM unnest(p_lo, p_hi) AS r (lo, hi)
                        WHERE coalesce(p.version, p.pin) = -1
                            OR coalesce(p.version, p.pin) BETWEEN r.lo AND r.hi LIMIT 1) = 1
                ) AND (p_shut IS NULL OR p.pin <> ALL (p_shut)) AND (
                    SELECT 1 FROM {schema}.instance_locks AS l
                    WHERE l.lock_token IS NULL AND l.head IS NOT NULL AND l.pin = p.pin AND l.head >= p_floor
                    LIMIT 1
                ) = 1
                LIMIT 1
            ),
            (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.state = 0 AND q.visible_ms BETWEEN p_due
                AND p_now LIMIT 1),
            (
                SELECT 1 FROM {schema}.instance_locks AS l
                WHERE l.lock_token IS NOT NULL AND l.locked_until BETWEEN p_leased AND p_now LIMIT 1
            )
        ) IS NOT NULL
    );
END
$function$
