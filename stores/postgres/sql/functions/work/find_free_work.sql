-- Finds the oldest ready activities without a session, of the given tags or of all: one walk over an index for each tag (S20).
-- p_floor is that of the ids. With p_hold they are locked, and what others have locked is left out, however much that is; of
-- several tags more may be locked than are found.
-- Locks: none; with p_hold worker_queue, skipping what others have locked.
CREATE OR REPLACE FUNCTION {schema}.find_free_work(
    p_count INTEGER, p_tags TEXT[], p_floor BIGINT DEFAULT 0, p_hold BOOLEAN DEFAULT false
) RETURNS SETOF BIGINT
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    IF p_hold AND p_tags IS NULL THEN
        RETURN QUERY
        SELECT w.id FROM {schema}.worker_queue AS w
        WHERE w.state = 1 AND w.session_id IS NULL AND w.id - 0 >= p_floor
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
        WHERE w.state = 1 AND w.session_id IS NULL AND w.id - 0 >= p_floor
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
