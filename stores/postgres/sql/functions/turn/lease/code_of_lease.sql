-- Judges a lease by the time at which it expires: `lost` if that is NULL (the token is unknown), `ended` if
-- it has passed, else `ok` (S4).
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.code_of_lease(p_locked_until BIGINT, p_now BIGINT) RETURNS TEXT
LANGUAGE sql IMMUTABLE AS $function$
    SELECT CASE WHEN p_locked_until IS NULL THEN 'lost' WHEN p_locked_until <= p_now THEN 'ended'
        ELSE 'ok' END
$function$
