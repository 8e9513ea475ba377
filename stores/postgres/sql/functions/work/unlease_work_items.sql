-- Abandons leases whose fetch was dropped before its caller received them: they are no deliveries (S22), and
-- claims of sessions that were made for them are released unless they are in use (S5). p_claimed: which
-- of the leases made a claim.
-- Locks: `lines` of the sessions in the order of their keys, `worker_queue` in the order of id, then
-- `sessions`.
CREATE OR REPLACE FUNCTION {schema}.unlease_work_items(
    p_tokens TEXT[], p_claimed BOOLEAN[], p_now_ms BIGINT DEFAULT NULL, p_notify TEXT DEFAULT NULL,
    p_me TEXT DEFAULT NULL
) RETURNS VOID
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_epochs BIGINT[];
    v_leased_by XID[];
BEGIN
    SELECT array_agg(w.session_scope), array_agg(w.session_id), array_agg(w.epoch), array_agg(w.xmin)
    INTO v_scopes, v_sessions, v_epochs, v_leased_by
    FROM unnest(p_tokens, p_claimed) AS f (token, claimed)
    CROSS JOIN LATERAL (
        SELECT w.session_scope, w.session_id, w.epoch, w.xmin FROM {schema}.worker_queue AS w
            WHERE w.lock_token = f.token OFFSET 0
    ) AS w
    WHERE f.claimed AND w.session_id IS NOT NULL;
    PERFORM {schema}.give_work_back(
        p_tokens, array_fill(NULL::bigint, ARRAY[cardinality(p_tokens)]),
        array_fill(true, ARRAY[cardinality(p_tokens)]), false, v_now,
        p_undelivered => true
    );
    IF v_sessions IS NOT NULL THEN
        PERFORM {schema}.unclaim(v_scopes, v_sessions, v_epochs, v_now, v_leased_by);
    END IF;
    PERFORM {schema}.notify(p_notify, p_me);
END
$function$
