-- Writes into the trails of sessions how their last claims ended: as p_change says if the lease lasts, else
-- they expired. Of several ends of a claim the first one counts: nothing is written about a claim that was
-- released, although its trail may have forgotten that. A session that was never claimed has no end. It comes
-- before the change of the rows in `sessions`.
-- Locks: none. The caller has locked the `lines` rows.
CREATE OR REPLACE FUNCTION {schema}.note_ends(
    p_scopes TEXT[], p_sessions TEXT[], p_change TEXT, p_now BIGINT
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    INSERT INTO {schema}.session_trail
        (instance_id, session_id, epoch, is_end, worker_id, incarnation, at_ms, change)
    SELECT s.instance_id, s.session_id, s.epoch, true, s.worker_id, s.incarnation,
        least(s.locked_until, p_now),
        CASE WHEN s.held AND s.locked_until > p_now THEN p_change ELSE 'expired' END
    FROM unnest(p_scopes, p_sessions) AS line (scope, session)
    CROSS JOIN LATERAL (
        SELECT s.* FROM {schema}.sessions AS s
        WHERE s.instance_id = line.scope AND s.session_id = line.session AND s.epoch > 0
          AND s.released_epoch IS DISTINCT FROM s.epoch
        OFFSET 0
    ) AS s
    ON CONFLICT DO NOTHING;
END
$function$
