-- Takes back claims that nobody came to use: those whose attachment is still the given one, and of which nothing runs (S5).
-- Locks: the lines, sessions.
CREATE OR REPLACE FUNCTION {schema}.unclaim(p_scopes TEXT[], p_sessions TEXT[], p_epochs BIGINT[], p_now BIGINT) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_epochs BIGINT[];
BEGIN
    PERFORM {schema}.lock_lines(p_scopes, p_sessions);
    SELECT array_agg(claim.scope), array_agg(claim.session), array_agg(claim.epoch) INTO v_scopes, v_sessions, v_epochs
    FROM unnest(p_scopes, p_sessions, p_epochs) AS claim (scope, session, epoch)
    WHERE (
        SELECT 1 FROM {schema}.worker_queue AS w
        WHERE w.session_id = claim.session AND w.session_scope = claim.scope AND w.state = 2 AND w.epoch = claim.epoch
        LIMIT 1
    ) IS NULL;
    IF v_sessions IS NOT NULL THEN
        PERFORM {schema}.let_go(v_scopes, v_sessions, v_epochs, p_now);
    END IF;
END
$function$
