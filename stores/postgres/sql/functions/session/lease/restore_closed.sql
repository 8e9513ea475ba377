-- Gives sessions back the closed claims that claims of dropped fetches had replaced, if their leases last:
-- other workers wait again until the former owner has detached the session (S13, G41). The claims that are
-- taken back, given by key and epoch, have been released. As before them, the sessions have no epoch.
-- Locks: `closed_sessions`. The caller has locked the `lines` and `sessions` rows; claims that were replaced
-- change only under the lock of the `lines` row.
CREATE OR REPLACE FUNCTION {schema}.restore_closed(
    p_scopes TEXT[], p_sessions TEXT[], p_epochs BIGINT[], p_now BIGINT
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_closed {schema}.closed_sessions;
BEGIN
    FOR v_closed IN
        DELETE FROM {schema}.closed_sessions AS c
        USING unnest(p_scopes, p_sessions, p_epochs) AS claim (scope, session, epoch)
        WHERE c.instance_id = claim.scope AND c.session_id = claim.session AND c.replaced_by = claim.epoch
          AND c.locked_until > p_now
        RETURNING c.*
    LOOP
        UPDATE {schema}.sessions AS s
        SET held = true, worker_id = v_closed.worker_id, incarnation = v_closed.incarnation,
            locked_until = v_closed.locked_until, epoch = 0, closed_epoch = v_closed.epoch
        WHERE s.instance_id = v_closed.instance_id AND s.session_id = v_closed.session_id;
        PERFORM {schema}.own_heads(ARRAY[v_closed.instance_id], ARRAY[v_closed.session_id],
            ':' || v_closed.worker_id);
        PERFORM {schema}.lower_floor('held_sessions', v_closed.locked_until);
    END LOOP;
END
$function$
