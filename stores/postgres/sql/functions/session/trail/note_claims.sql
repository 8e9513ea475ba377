-- Writes new claims of an owner into the trails of the sessions, and removes the oldest claims of a trail
-- that has more than 100 entries.
-- Locks: none. The caller has locked the `lines` rows.
CREATE OR REPLACE FUNCTION {schema}.note_claims(
    p_scopes TEXT[], p_sessions TEXT[], p_epochs BIGINT[], p_owner TEXT, p_incarnation BIGINT, p_now BIGINT
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_most CONSTANT INTEGER := 100;
BEGIN
    INSERT INTO {schema}.session_trail
        (instance_id, session_id, epoch, is_end, worker_id, incarnation, at_ms, change)
    SELECT claim.scope, claim.session, claim.epoch, false, p_owner, p_incarnation, p_now, 'claimed'
    FROM unnest(p_scopes, p_sessions, p_epochs) AS claim (scope, session, epoch)
    ON CONFLICT DO NOTHING;
    DELETE FROM {schema}.session_trail AS t
    USING unnest(p_scopes, p_sessions) AS claim (scope, session)
    CROSS JOIN LATERAL (
        SELECT old.epoch FROM {schema}.session_trail AS old
        WHERE old.instance_id = claim.scope AND old.session_id = claim.session
        ORDER BY old.instance_id DESC, old.session_id DESC, old.epoch DESC, old.is_end DESC
        OFFSET v_most LIMIT 1
    ) AS old
    WHERE t.instance_id = claim.scope AND t.session_id = claim.session AND t.epoch <= old.epoch;
END
$function$
