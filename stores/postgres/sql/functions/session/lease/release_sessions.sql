-- Releases claims of an owner, given by session and epoch, so that other workers can claim the sessions
-- (S13). Returns the positions of the claims that were live; one of a session that was closed is not among
-- them, and its lease is ended too, because its owner has detached it. If the call comes from an older
-- incarnation of the node, it changes nothing and returns the newest incarnation. p_change: the reason, for
-- the trails of the sessions.
-- Locks: those of end_closed; `lines` in the order of their keys, then `sessions` in the same order.
CREATE OR REPLACE FUNCTION {schema}.release_sessions(
    p_owner TEXT, p_incarnation BIGINT, p_scopes TEXT[], p_sessions TEXT[], p_epochs BIGINT[],
    p_now_ms BIGINT DEFAULT NULL,
    p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL, p_change TEXT DEFAULT 'released'
) RETURNS TABLE (place BIGINT, newest BIGINT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_newest BIGINT;
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_epochs BIGINT[];
    v_asked BIGINT[];
    v_places BIGINT[];
BEGIN
    IF p_incarnation IS NOT NULL THEN
        v_newest := {schema}.check_incarnation(p_owner, p_incarnation);
        IF v_newest IS NOT NULL THEN
            RETURN QUERY SELECT NULL::bigint, v_newest;
            RETURN;
        END IF;
    END IF;
    IF {schema}.end_closed(p_owner, p_incarnation, p_scopes, p_sessions, p_epochs, v_now) THEN
        PERFORM {schema}.notify(p_notify, p_me);
    END IF;
    SELECT array_agg(s.instance_id), array_agg(s.session_id), array_agg(s.epoch), array_agg(asked.place)
    INTO v_scopes, v_sessions, v_epochs, v_asked
    FROM unnest(p_scopes, p_sessions, p_epochs) WITH ORDINALITY AS asked (scope, session, epoch, place)
    CROSS JOIN LATERAL (
        SELECT s.instance_id, s.session_id, s.epoch FROM {schema}.sessions AS s
        WHERE s.instance_id = asked.scope AND s.session_id = asked.session AND s.epoch = asked.epoch
          AND s.held AND s.locked_until > v_now AND s.worker_id = p_owner
          AND s.closed_epoch IS NULL
          AND (p_incarnation IS NULL OR s.incarnation IS NOT DISTINCT FROM p_incarnation)
        OFFSET 0
    ) AS s;
    IF v_sessions IS NULL THEN
        RETURN;
    END IF;
    PERFORM {schema}.lock_lines(v_scopes, v_sessions);
    v_places := {schema}.let_go(v_scopes, v_sessions, v_epochs, v_now, p_change);
    PERFORM {schema}.notify(p_notify, p_me);
    RETURN QUERY SELECT v_asked[p.place], NULL::bigint FROM unnest(v_places) AS p (place) ORDER BY 1;
END
$function$
