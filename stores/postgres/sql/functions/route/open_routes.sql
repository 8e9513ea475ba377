-- Returns the routed tags whose work a worker is given (S21), of those whose plain tag is among p_tags; NULL
-- for all plain tags. A worker that is NULL is given all. NULL if no work is routed: one look at an empty
-- table.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.open_routes(p_worker TEXT, p_tags TEXT[], p_now BIGINT) RETURNS TEXT[]
LANGUAGE plpgsql STABLE
AS $function$
#variable_conflict use_column
BEGIN
    RETURN (
        SELECT coalesce(array_agg(r.tag) FILTER (
            WHERE (p_tags IS NULL OR r.plain = ANY (p_tags))
              AND (p_worker IS NULL
                  OR {schema}.takes_route(p_worker, 1::smallint, r.handler, NULL, r.plain, p_now,
                      r.on_session, NULL))
        ), '{}')
        FROM {schema}.routes AS r
        HAVING count(*) > 0
    );
END
$function$
