-- Records that an execution wants to be told of new claims of a session: of the second claim that it sees and
-- of all later ones (S13).
-- Locks: the row of the session in `lines`, so that no claim happens unseen and no watch is recorded twice.
CREATE OR REPLACE FUNCTION {schema}.watch_session(
    p_scope TEXT, p_session TEXT, p_instance TEXT, p_execution BIGINT
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    PERFORM {schema}.lock_lines(ARRAY[p_scope], ARRAY[p_session]);
    INSERT INTO {schema}.watchers (session_scope, session_id, instance_id, execution_id, has_seen)
    SELECT p_scope, p_session, p_instance, p_execution, EXISTS (
        SELECT 1 FROM {schema}.sessions AS s
        WHERE s.instance_id = p_scope AND s.session_id = p_session AND s.epoch > 0
    )
    WHERE NOT EXISTS (
        SELECT 1 FROM {schema}.watchers AS w
        WHERE w.session_scope = p_scope AND w.session_id = p_session
          AND w.instance_id = p_instance AND w.execution_id = p_execution
    );
END
$function$
