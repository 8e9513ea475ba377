-- Sets the last activity of sessions to p_now, for callers whose claim is still the current one (same epoch,
-- lease not expired) (S13).
-- Locks: `sessions` in the order of keys.
CREATE OR REPLACE FUNCTION {schema}.touch_sessions(
    p_scopes TEXT[], p_sessions TEXT[], p_epochs BIGINT[], p_now BIGINT
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_rows TID[] := ARRAY(
        SELECT s.ctid
        FROM (
            SELECT DISTINCT held.scope COLLATE "C" AS scope, held.session COLLATE "C" AS session, held.epoch
            FROM unnest(p_scopes, p_sessions, p_epochs) AS held (scope, session, epoch)
            ORDER BY 1, 2
        ) AS held
        CROSS JOIN LATERAL (
            SELECT s.ctid FROM {schema}.sessions AS s
            WHERE s.instance_id = held.scope AND s.session_id = held.session AND s.epoch = held.epoch
              AND s.held AND s.locked_until > p_now AND s.last_activity_at <> p_now
            FOR UPDATE
        ) AS s
    );
BEGIN
    IF cardinality(v_rows) > 0 THEN
        UPDATE {schema}.sessions AS s SET last_activity_at = p_now WHERE s.ctid = ANY (v_rows);
    END IF;
END
$function$
