-- Names the kind of a work item, which is its only key; NULL for what is none.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.kind_of_item(p_item JSONB) RETURNS TEXT
LANGUAGE sql IMMUTABLE AS $function$
    SELECT CASE WHEN jsonb_typeof(p_item) = 'object'
        THEN (SELECT key FROM jsonb_object_keys(p_item) AS key LIMIT 1) END
$function$
