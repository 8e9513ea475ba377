-- Releases claims of sessions, given by key and epoch: claims with another epoch or an expired lease are left
-- alone (S13). Afterwards any worker may claim the session. The worker stays in the row as the last owner.
-- The trails of the sessions get p_change as the reason. Returns the positions of the released claims in the
-- arrays.
-- Locks: `sessions` in the order of their keys. The caller has locked the `lines` rows.
CREATE OR REPLACE FUNCTION {schema}.let_go(p_scopes TEXT[], p_sessions TEXT[], p_epochs BIGINT[],
    p_now BIGINT, p_change TEXT DEFAULT 'released')
RETURNS BIGINT[]
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_rows TID[];
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_places BIGINT[];
BEGIN
    SELECT array_agg(s.ctid), array_agg(asked.scope), array_agg(asked.session),
        array_agg(asked.place ORDER BY asked.place)
    INTO v_rows, v_scopes, v_sessions, v_places
    FROM (
        SELECT asked.scope COLLATE "C" AS scope, asked.session COLLATE "C" AS session, asked.epoch,
            min(asked.place) AS place
        FROM unnest(p_scopes, p_sessions, p_epochs) WITH ORDINALITY AS asked (scope, session, epoch, place)
        GROUP BY 1, 2, 3
        ORDER BY 1, 2
    ) AS asked
    CROSS JOIN LATERAL (
        SELECT s.ctid FROM {schema}.sessions AS s
        WHERE s.instance_id = asked.scope AND s.session_id = asked.session AND s.epoch = asked.epoch
          AND s.held AND s.locked_until > p_now AND s.closed_epoch IS NULL
        FOR UPDATE
    ) AS s;
    IF v_rows IS NULL THEN
        RETURN '{}';
    END IF;
    PERFORM {schema}.note_ends(v_scopes, v_sessions, p_change, p_now);
    UPDATE {schema}.sessions AS s SET held = false, locked_until = p_now, released_epoch = s.epoch
    WHERE s.ctid = ANY (v_rows);
    PERFORM {schema}.own_heads(v_scopes, v_sessions, '');
    RETURN v_places;
END
$function$
