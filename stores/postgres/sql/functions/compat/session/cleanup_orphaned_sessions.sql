-- Compatible function: removes sessions without a live lease and without work, if they are shared or their
-- instance does not exist, and returns how many (S13). A lease that expires at this very moment counts as
-- live.
-- Locks: those of cleanup_sessions, page by page.
CREATE OR REPLACE FUNCTION {schema}.cleanup_orphaned_sessions(p_now_ms BIGINT) RETURNS BIGINT
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    v_page  RECORD;
    v_count BIGINT := 0;
    v_before BIGINT := {schema}.now_ms(p_now_ms) - 1;
BEGIN
    SELECT * INTO v_page FROM {schema}.cleanup_sessions(p_now_ms => v_before);
    LOOP
        v_count := v_count + v_page.removed;
        EXIT WHEN v_page.last_session IS NULL;
        SELECT * INTO v_page FROM {schema}.cleanup_sessions(v_page.last_scope, v_page.last_session, v_before);
    END LOOP;
    RETURN v_count;
END
$function$
