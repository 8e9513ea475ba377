-- Finds the oldest ready work without a session, of the given tags or of all (p_tags NULL), with one index
-- scan per tag (S20). With p_tags NULL, p_routes are the routed tags to look for besides (S21). p_floor: the
-- id at which the scans start. With p_hold the rows are locked, and rows
-- that other transactions have locked are skipped, however many there are; with several tags more rows may be
-- locked than are returned.
-- p_bare: only work without terms, see find_bare_work (S22).
-- Sorting is switched off for the planner: without statistics it expects one ready row, takes any index of
-- the ready rows for as good as another, and would read and sort the work of all tags.
-- Locks: none; with p_hold `worker_queue`, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.find_free_work(
    p_count INTEGER, p_tags TEXT[], p_floor BIGINT DEFAULT 0, p_hold BOOLEAN DEFAULT false,
    p_routes TEXT[] DEFAULT NULL, p_bare BOOLEAN DEFAULT false
) RETURNS SETOF BIGINT
LANGUAGE plpgsql
SET enable_sort TO off
AS $function$
#variable_conflict use_column
BEGIN
    IF p_bare THEN
        RETURN QUERY
        SELECT bare.id FROM {schema}.find_bare_work(p_count, p_tags, p_floor, p_hold, p_routes) AS bare (id);
    ELSIF p_tags IS NULL AND cardinality(p_routes) > 0 THEN
        RETURN QUERY
        SELECT found.id
        FROM (
            SELECT plain.id
            FROM {schema}.find_free_work(p_count, NULL, p_floor, p_hold) AS plain (id)
            UNION ALL
            SELECT routed.id
            FROM {schema}.find_free_work(p_count, p_routes, p_floor, p_hold) AS routed (id)
        ) AS found
        ORDER BY found.id LIMIT p_count;
    ELSIF p_hold AND p_tags IS NULL THEN
        RETURN QUERY
        SELECT w.id FROM {schema}.worker_queue AS w
        WHERE w.state = 1 AND w.session_id IS NULL AND w.tag < '@' AND w.id - 0 >= p_floor
        ORDER BY w.id - 0 LIMIT p_count
        FOR UPDATE SKIP LOCKED;
    ELSIF p_hold THEN
        RETURN QUERY
        SELECT oldest.id
        FROM unnest(p_tags) AS wanted (tag)
        CROSS JOIN LATERAL (
            SELECT w.id FROM {schema}.worker_queue AS w
            WHERE w.state = 1 AND w.session_id IS NULL AND w.tag = wanted.tag AND w.id + 0 >= p_floor
            ORDER BY w.id + 0 LIMIT p_count
            FOR UPDATE SKIP LOCKED
        ) AS oldest
        ORDER BY oldest.id LIMIT p_count;
    ELSIF p_tags IS NULL THEN
        RETURN QUERY
        SELECT w.id FROM {schema}.worker_queue AS w
        WHERE w.state = 1 AND w.session_id IS NULL AND w.tag < '@' AND w.id - 0 >= p_floor
        ORDER BY w.id - 0 LIMIT p_count;
    ELSE
        RETURN QUERY
        SELECT oldest.id
        FROM unnest(p_tags) AS wanted (tag)
        CROSS JOIN LATERAL (
            SELECT w.id FROM {schema}.worker_queue AS w
            WHERE w.state = 1 AND w.session_id IS NULL AND w.tag = wanted.tag AND w.id + 0 >= p_floor
            ORDER BY w.id + 0 LIMIT p_count
        ) AS oldest
        ORDER BY oldest.id LIMIT p_count;
    END IF;
END
$function$
