-- Tells whether a message is a start or a continue-as-new.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.starts_an_execution(p_item JSONB) RETURNS BOOLEAN
LANGUAGE sql IMMUTABLE AS $function$
    SELECT coalesce(
        {schema}.kind_of_item(p_item) IN ('StartOrchestration', 'ContinueAsNew', 'ContinueAsNewWithSessions'),
            false
    )
$function$
