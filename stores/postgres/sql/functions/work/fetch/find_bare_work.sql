-- Finds the oldest ready work without a session and without terms, for a caller that does not know terms
-- (S22). It is otherwise like find_free_work, and finds the work by indexes that hold no other work (S20).
-- Sorting is switched off for the planner, as in find_free_work.
-- Locks: none; with p_hold `worker_queue`, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.find_bare_work(
    p_count INTEGER, p_tags TEXT[], p_floor BIGINT, p_hold BOOLEAN, p_routes TEXT[] DEFAULT NULL
) RETURNS SETOF BIGINT
LANGUAGE plpgsql
SET enable_sort TO off
AS $function$
#variable_conflict use_column
BEGIN
    IF p_tags IS NULL AND cardinality(p_routes) > 0 THEN
        RETURN QUERY
        SELECT found.id
        FROM (
            SELECT plain.id
            FROM {schema}.find_bare_work(p_count, NULL, p_floor, p_hold) AS plain (id)
            UNION ALL
            SELECT routed.id
            FROM {schema}.find_bare_work(p_count, p_routes, p_floor, p_hold) AS routed (id)
        ) AS found
        ORDER BY found.id LIMIT p_count;
    ELSIF p_hold AND p_tags IS NULL THEN
        RETURN QUERY
        SELECT w.id FROM {schema}.worker_queue AS w
        WHERE w.state = 1 AND w.session_id IS NULL AND w.call IS NULL AND w.tag < '@' AND 0 + w.id >= p_floor
        ORDER BY 0 + w.id LIMIT p_count
        FOR UPDATE SKIP LOCKED;
    ELSIF p_hold THEN
        RETURN QUERY
        SELECT oldest.id
        FROM unnest(p_tags) AS wanted (tag)
        CROSS JOIN LATERAL (
            SELECT w.id FROM {schema}.worker_queue AS w
            WHERE w.state = 1 AND w.session_id IS NULL AND w.call IS NULL AND w.tag = wanted.tag
              AND 0 + w.id >= p_floor
            ORDER BY 0 + w.id LIMIT p_count
            FOR UPDATE SKIP LOCKED
        ) AS oldest
        ORDER BY oldest.id LIMIT p_count;
    ELSIF p_tags IS NULL THEN
        RETURN QUERY
        SELECT w.id FROM {schema}.worker_queue AS w
        WHERE w.state = 1 AND w.session_id IS NULL AND w.call IS NULL AND w.tag < '@' AND 0 + w.id >= p_floor
        ORDER BY 0 + w.id LIMIT p_count;
    ELSE
        RETURN QUERY
        SELECT oldest.id
        FROM unnest(p_tags) AS wanted (tag)
        CROSS JOIN LATERAL (
            SELECT w.id FROM {schema}.worker_queue AS w
            WHERE w.state = 1 AND w.session_id IS NULL AND w.call IS NULL AND w.tag = wanted.tag
              AND 0 + w.id >= p_floor
            ORDER BY 0 + w.id LIMIT p_count
        ) AS oldest
        ORDER BY oldest.id LIMIT p_count;
    END IF;
END
$function$
