-- Tells whether it is time for a look below the floors (see tend_floors): a minute after the last one, or
-- when the clock was changed by more than a minute.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.is_healing_due(p_healed_ms BIGINT, p_now BIGINT) RETURNS BOOLEAN
LANGUAGE sql IMMUTABLE AS $function$
    SELECT abs(p_now - p_healed_ms) >= 60000
$function$
