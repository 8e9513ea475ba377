-- Tells the time that decides: the given one, or that of the database (S16).
CREATE OR REPLACE FUNCTION {schema}.now_ms(p_now_ms BIGINT) RETURNS BIGINT
LANGUAGE sql VOLATILE AS $function$
    SELECT coalesce(p_now_ms, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
$function$
