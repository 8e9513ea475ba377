-- Releases claims that were made for a fetch whose result was not used (S5). A claim is released only if it
-- is still the current one and no work is leased under it. p_leased_by is, for each claim, the transaction
-- that leased the work and claimed the session: if another transaction has written the session row since, the
-- claim is in use and stays. A closed claim that a released one had replaced counts again (S13).
-- Locks: `lines`, then `sessions`, both in the order of keys; then those of restore_closed.
CREATE OR REPLACE FUNCTION {schema}.unclaim(
    p_scopes TEXT[], p_sessions TEXT[], p_epochs BIGINT[], p_now BIGINT, p_leased_by XID[] DEFAULT NULL
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_epochs BIGINT[];
    v_places BIGINT[];
BEGIN
    PERFORM {schema}.lock_lines(p_scopes, p_sessions);
    SELECT array_agg(claim.scope), array_agg(claim.session), array_agg(claim.epoch) INTO v_scopes, v_sessions,
        v_epochs
    FROM unnest(p_scopes, p_sessions, p_epochs, p_leased_by) AS claim (scope, session, epoch, leased_by)
    CROSS JOIN LATERAL (
        SELECT s.xmin FROM {schema}.sessions AS s
        WHERE s.instance_id = claim.scope AND s.session_id = claim.session
        OFFSET 0
    ) AS s
    WHERE (claim.leased_by IS NULL OR claim.leased_by = s.xmin)
      AND (
          SELECT 1 FROM {schema}.worker_queue AS w
          WHERE w.session_id = claim.session AND w.session_scope = claim.scope AND w.state = 2
              AND w.epoch = claim.epoch
          LIMIT 1
      ) IS NULL;
    IF v_sessions IS NOT NULL THEN
        v_places := {schema}.let_go(v_scopes, v_sessions, v_epochs, p_now, 'unused');
        PERFORM {schema}.restore_closed(array_agg(v_scopes[p.place]), array_agg(v_sessions[p.place]),
            array_agg(v_epochs[p.place]), p_now)
        FROM unnest(v_places) AS p (place)
        HAVING count(*) > 0;
    END IF;
END
$function$
