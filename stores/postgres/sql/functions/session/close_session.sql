-- Closes a session of an instance and withdraws its work (S12, S13). A session that does not exist is no
-- error.
-- Locks: the row of the session in `lines`, then its work in `worker_queue` in the order of id.
CREATE OR REPLACE FUNCTION {schema}.close_session(p_instance TEXT, p_session TEXT, p_now BIGINT DEFAULT NULL)
    RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    IF EXISTS (SELECT 1 FROM {schema}.lines AS l WHERE l.instance_id = p_instance
        AND l.session_id = p_session) THEN
        PERFORM {schema}.close_lines(ARRAY[p_instance], ARRAY[p_session], p_now);
    END IF;
END
$function$
