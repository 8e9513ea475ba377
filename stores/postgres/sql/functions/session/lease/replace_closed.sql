-- Keeps the closed claims of reopened sessions that are claimed now, given by key and new epoch, if their
-- leases last: they count again if the fetch that claims the session is dropped (S13, G41). It comes before
-- the change of the rows in `sessions`.
-- Locks: `closed_sessions`. The caller has locked the `lines` and `sessions` rows; only under the lock of its
-- `lines` row does a claim that was replaced get there, and no other row of the session is there then.
CREATE OR REPLACE FUNCTION {schema}.replace_closed(
    p_scopes TEXT[], p_sessions TEXT[], p_epochs BIGINT[], p_now BIGINT
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    INSERT INTO {schema}.closed_sessions AS c
        (instance_id, session_id, worker_id, incarnation, epoch, locked_until, replaced_by)
    SELECT claim.scope, claim.session, s.worker_id, s.incarnation, s.closed_epoch, s.locked_until, claim.epoch
    FROM unnest(p_scopes, p_sessions, p_epochs) AS claim (scope, session, epoch)
    CROSS JOIN LATERAL (
        SELECT s.worker_id, s.incarnation, s.closed_epoch, s.locked_until FROM {schema}.sessions AS s
        WHERE s.instance_id = claim.scope AND s.session_id = claim.session AND s.closed_epoch IS NOT NULL
          AND s.held AND s.locked_until > p_now
        OFFSET 0
    ) AS s
    ON CONFLICT (instance_id, session_id) DO UPDATE
    SET worker_id = excluded.worker_id, incarnation = excluded.incarnation, epoch = excluded.epoch,
        locked_until = excluded.locked_until, replaced_by = excluded.replaced_by;
END
$function$
