-- Adds a delay to a time, as far as a number can say it: what is beyond is as good as for ever. NULL for no delay.
CREATE OR REPLACE FUNCTION {schema}.after_ms(p_now BIGINT, p_delay BIGINT) RETURNS BIGINT
LANGUAGE sql IMMUTABLE AS $function$
    SELECT CASE WHEN p_delay > 9223372036854775807 - p_now THEN 9223372036854775807 ELSE p_now + p_delay END
$function$
