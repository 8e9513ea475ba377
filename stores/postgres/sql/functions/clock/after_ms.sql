-- Adds a delay to a time, both in milliseconds. A sum beyond the largest BIGINT becomes the largest BIGINT,
-- which means never. A delay of NULL gives NULL.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.after_ms(p_now BIGINT, p_delay BIGINT) RETURNS BIGINT
LANGUAGE sql IMMUTABLE AS $function$
    SELECT CASE WHEN p_delay > 9223372036854775807 - p_now THEN 9223372036854775807 ELSE p_now + p_delay END
$function$
