-- Returns the instance that a message is sent to: for the answer of a child its parent. NULL if the message
-- names no instance.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.instance_of_item(p_item JSONB) RETURNS TEXT
LANGUAGE sql IMMUTABLE AS $function$
    SELECT coalesce(
        p_item->'SubOrchCompleted'->>'parent_instance',
        p_item->'SubOrchFailed'->>'parent_instance',
        p_item->{schema}.kind_of_item(p_item)->>'instance'
    )
$function$
