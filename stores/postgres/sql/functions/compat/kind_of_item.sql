-- Returns the kind of a work item, which is the only key of the JSON object. NULL if the value is no object.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.kind_of_item(p_item JSONB) RETURNS TEXT
LANGUAGE sql IMMUTABLE AS $function$
    SELECT CASE WHEN jsonb_typeof(p_item) = 'object'
        THEN (SELECT key FROM jsonb_object_keys(p_item) AS key LIMIT 1) END
$function$
