-- Returns the tag without its route: a routed tag is '@' or 'A', 32 characters for the handler, and the plain
-- tag.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.plain_tag(p_tag TEXT) RETURNS TEXT
LANGUAGE sql IMMUTABLE AS $function$
    SELECT CASE WHEN left(p_tag, 1) IN ('@', 'A') THEN substr(p_tag, 34) ELSE p_tag END
$function$
