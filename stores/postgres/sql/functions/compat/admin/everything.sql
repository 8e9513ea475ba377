-- Returns the notification that wakes every listener. Callers of the compatible functions do not say what
-- became runnable, so every process has to look.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.everything() RETURNS TEXT
LANGUAGE sql IMMUTABLE AS $function$
    SELECT '{"all":true,"from":""}'
$function$
