-- Finds the oldest ready activities without a session, of the given tags or of all: one walk over an index for each tag (S20).
-- p_floor is that of the ids.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.find_free_work(p_count INTEGER, p_tags TEXT[], p_floor BIGINT DEFAULT 0) RETURNS SETOF BIGINT
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    IF p_tags IS NULL THEN
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
