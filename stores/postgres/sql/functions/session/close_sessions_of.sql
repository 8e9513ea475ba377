-- Closes the sessions that an instance has open and withdraws their work (S12, S13); shared ones are nobody's.
-- Locks: their lines, then their rows of worker_queue in the order of id.
CREATE OR REPLACE FUNCTION {schema}.close_sessions_of(p_instance TEXT) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_sessions TEXT[] := ARRAY(
        SELECT s.session_id FROM {schema}.sessions AS s WHERE s.instance_id = p_instance AND p_instance <> ''
    );
BEGIN
    IF cardinality(v_sessions) > 0 THEN
        PERFORM {schema}.close_lines(array_fill(p_instance, ARRAY[cardinality(v_sessions)]), v_sessions);
    END IF;
END
$function$
