-- Returns the given time, or the time of the database if NULL is given (S16), in Unix milliseconds.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.now_ms(p_now_ms BIGINT) RETURNS BIGINT
LANGUAGE sql VOLATILE AS $function$
    SELECT coalesce(p_now_ms, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
$function$
