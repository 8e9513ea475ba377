-- Ends all watches of an execution (S13).
-- Locks: the rows of `watchers` that it deletes.
CREATE OR REPLACE FUNCTION {schema}.unwatch_sessions(p_instance TEXT, p_execution BIGINT) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    DELETE FROM {schema}.watchers AS w WHERE w.instance_id = p_instance AND w.execution_id = p_execution;
END
$function$
