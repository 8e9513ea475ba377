-- Closes all sessions that an instance owns and withdraws their work (S12, S13). Shared sessions belong to no
-- instance and stay.
-- Locks: the rows of the sessions in `lines`, then their work in `worker_queue` in the order of id.
CREATE OR REPLACE FUNCTION {schema}.close_sessions_of(p_instance TEXT, p_now BIGINT DEFAULT NULL) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_sessions TEXT[] := ARRAY(
        SELECT s.session_id FROM {schema}.sessions AS s WHERE s.instance_id = p_instance AND p_instance <> ''
    );
BEGIN
    IF cardinality(v_sessions) > 0 THEN
        PERFORM {schema}.close_lines(array_fill(p_instance, ARRAY[cardinality(v_sessions)]), v_sessions,
            p_now);
    END IF;
END
$function$
