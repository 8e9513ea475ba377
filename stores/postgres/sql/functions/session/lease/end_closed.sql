-- Ends the leases of claims whose sessions were closed, because their owner has detached them (S13). A
-- session that was opened again can then be claimed by any worker. Returns whether there is such a session.
-- If the owner has claimed the session again, a fetch that is dropped later does not give the closed claim
-- back.
-- Locks: `closed_sessions`; then `lines` and `sessions` in the order of their keys, then claims that were
-- replaced in `closed_sessions`. An opening that has locked a row of `closed_sessions` is waited for, and its
-- session is seen afterwards.
CREATE OR REPLACE FUNCTION {schema}.end_closed(
    p_owner TEXT, p_incarnation BIGINT, p_scopes TEXT[], p_sessions TEXT[], p_epochs BIGINT[], p_now BIGINT
) RETURNS BOOLEAN
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_scopes TEXT[];
    v_sessions TEXT[];
BEGIN
    DELETE FROM {schema}.closed_sessions AS c
    USING unnest(p_scopes, p_sessions, p_epochs) AS asked (scope, session, epoch)
    WHERE c.instance_id = asked.scope AND c.session_id = asked.session AND c.epoch = asked.epoch
      AND c.worker_id = p_owner AND c.replaced_by IS NULL
      AND (p_incarnation IS NULL OR c.incarnation IS NOT DISTINCT FROM p_incarnation);
    -- One statement looks at both places: a fetch moves the closed claim to the other one, and back if it is
    -- dropped.
    SELECT array_agg(asked.scope), array_agg(asked.session) INTO v_scopes, v_sessions
    FROM unnest(p_scopes, p_sessions, p_epochs) AS asked (scope, session, epoch)
    CROSS JOIN LATERAL (
        SELECT 1 FROM {schema}.sessions AS s
        WHERE s.instance_id = asked.scope AND s.session_id = asked.session AND s.closed_epoch = asked.epoch
          AND s.held AND s.worker_id = p_owner
          AND (p_incarnation IS NULL OR s.incarnation IS NOT DISTINCT FROM p_incarnation)
        UNION ALL
        SELECT 1 FROM {schema}.closed_sessions AS c
        WHERE c.instance_id = asked.scope AND c.session_id = asked.session AND c.epoch = asked.epoch
          AND c.worker_id = p_owner AND c.replaced_by IS NOT NULL
          AND (p_incarnation IS NULL OR c.incarnation IS NOT DISTINCT FROM p_incarnation)
    ) AS found;
    IF v_sessions IS NULL THEN
        RETURN false;
    END IF;
    PERFORM {schema}.lock_lines(v_scopes, v_sessions);
    WITH freed AS (
        UPDATE {schema}.sessions AS s
        SET held = false, locked_until = p_now, worker_id = '', incarnation = NULL, closed_epoch = NULL
        FROM unnest(p_scopes, p_sessions, p_epochs) AS asked (scope, session, epoch)
        WHERE s.instance_id = asked.scope AND s.session_id = asked.session AND s.closed_epoch = asked.epoch
          AND s.worker_id = p_owner
        RETURNING s.instance_id, s.session_id
    )
    SELECT array_agg(freed.instance_id), array_agg(freed.session_id) INTO v_scopes, v_sessions FROM freed;
    DELETE FROM {schema}.closed_sessions AS c
    USING unnest(p_scopes, p_sessions, p_epochs) AS asked (scope, session, epoch)
    WHERE c.instance_id = asked.scope AND c.session_id = asked.session AND c.epoch = asked.epoch
      AND c.worker_id = p_owner AND c.replaced_by IS NOT NULL
      AND (p_incarnation IS NULL OR c.incarnation IS NOT DISTINCT FROM p_incarnation);
    IF v_sessions IS NULL THEN
        RETURN false;
    END IF;
    PERFORM {schema}.own_heads(v_scopes, v_sessions, '');
    RETURN true;
END
$function$
