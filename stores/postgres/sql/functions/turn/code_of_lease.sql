-- Judges a lease by its end, which is NULL for a token that holds nothing (S4).
CREATE OR REPLACE FUNCTION {schema}.code_of_lease(p_locked_until BIGINT, p_now BIGINT) RETURNS TEXT
LANGUAGE sql IMMUTABLE AS $function$
    SELECT CASE WHEN p_locked_until IS NULL THEN 'lost' WHEN p_locked_until <= p_now THEN 'ended'
        ELSE 'ok' END
$function$
