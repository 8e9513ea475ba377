-- Names the instance that a message goes to: the parent for the answer of a child, and NULL for what names none.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.instance_of_item(p_item JSONB) RETURNS TEXT
LANGUAGE sql IMMUTABLE AS $function$
    SELECT coalesce(
        p_item->'SubOrchCompleted'->>'parent_instance',
        p_item->'SubOrchFailed'->>'parent_instance',
        p_item->{schema}.kind_of_item(p_item)->>'instance'
    )
$function$
