-- Tells whether it is time to look below the floors: from time to time, and when the clock was set.
CREATE OR REPLACE FUNCTION {schema}.is_healing_due(p_healed_ms BIGINT, p_now BIGINT) RETURNS BOOLEAN
LANGUAGE sql IMMUTABLE AS $function$
    SELECT abs(p_now - p_healed_ms) >= 60000
$function$
