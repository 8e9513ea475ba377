-- Compatible function: removes sessions without a live lease and without work, if they are shared or their
-- instance does not exist, and returns how many (S13). A lease that expires at this very moment counts as
-- live. Then it removes entries of trails that are older than 7 days, and those that are not among the last
-- 100,000 changes, in at most 100 steps.
-- Locks: those of cleanup_sessions, page by page; then those of cleanup_session_trails.
CREATE OR REPLACE FUNCTION {schema}.cleanup_orphaned_sessions(p_now_ms BIGINT) RETURNS BIGINT
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    v_page  RECORD;
    v_count BIGINT := 0;
    v_before BIGINT := {schema}.now_ms(p_now_ms) - 1;
    v_kept_ms CONSTANT BIGINT := 604800000;
BEGIN
    SELECT * INTO v_page FROM {schema}.cleanup_sessions(p_now_ms => v_before);
    LOOP
        v_count := v_count + v_page.removed;
        EXIT WHEN v_page.last_session IS NULL;
        SELECT * INTO v_page FROM {schema}.cleanup_sessions(v_page.last_scope, v_page.last_session, v_before);
    END LOOP;
    FOR v_step IN 1..100 LOOP
        EXIT WHEN {schema}.cleanup_session_trails(v_kept_ms, 1000, 100000, p_now_ms) = 0;
    END LOOP;
    RETURN v_count;
END
$function$
