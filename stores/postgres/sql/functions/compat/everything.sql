-- Writes a notification for everybody: a caller that is no process of the store does not say what became runnable.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.everything() RETURNS TEXT
LANGUAGE sql IMMUTABLE AS $function$
    SELECT '{"all":true,"from":""}'
$function$
