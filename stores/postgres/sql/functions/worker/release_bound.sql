-- Returns how many instances, and how many pieces of work, one call of release_refused releases at most.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.release_bound() RETURNS INTEGER
LANGUAGE sql IMMUTABLE AS $function$
    SELECT 256
$function$
