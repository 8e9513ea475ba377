-- Compatible function: removes sessions without a live lease and without work, if they are shared or their
-- instance does not exist, and returns how many (S13).
-- Locks: those of cleanup_sessions, page by page.
CREATE OR REPLACE FUNCTION {schema}.cleanup_orphaned_sessions(p_now_ms BIGINT) RETURNS BIGINT
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    v_page  RECORD;
    v_count BIGINT := 0;
BEGIN
    SELECT * INTO v_page FROM {schema}.cleanup_sessions(p_now_ms => p_now_ms);
    LOOP
        v_count := v_count + v_page.removed;
        EXIT WHEN v_page.last_session IS NULL;
        SELECT * INTO v_page FROM {schema}.cleanup_sessions(v_page.last_scope, v_page.last_session, p_now_ms);
    END LOOP;
    RETURN v_count;
END
$function$
