-- Describes the messages of an instance: how many are leased, wait and are delayed (without the timers that
-- its code does not await any more), the visible time of the oldest waiting one, when its lease expires, and
-- which sessions its latest execution watches (S2, S5, S9, S17). No row if the instance does not exist.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.turn_of(p_instance TEXT, p_now_ms BIGINT DEFAULT NULL)
RETURNS TABLE (
    leased BIGINT, waiting BIGINT, oldest_ms BIGINT, delayed BIGINT, leased_until_ms BIGINT,
    watched_scopes TEXT[],
    watched_sessions TEXT[], now_ms BIGINT
)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_leased BIGINT[];
    v_until BIGINT;
BEGIN
    IF (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = p_instance) IS NULL
        AND (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = p_instance LIMIT 1) IS NULL
        AND (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = p_instance AND q.starts
            AND (q.parent_life IS NULL
                OR NOT {schema}.is_of_former_life(q.parent_instance_id, q.parent_life, true)) LIMIT 1) IS NULL
    THEN
        RETURN;
    END IF;
    SELECT l.leased, l.locked_until INTO v_leased, v_until
    FROM {schema}.instance_locks AS l
    WHERE l.instance_id = p_instance AND l.lock_token IS NOT NULL AND l.locked_until > v_now;
    RETURN QUERY
    SELECT count(*) FILTER (WHERE m.held),
        count(*) FILTER (WHERE NOT m.held AND m.visible_ms <= v_now),
        min(m.visible_ms) FILTER (WHERE NOT m.held AND m.visible_ms <= v_now),
        count(*) FILTER (WHERE NOT m.held AND m.visible_ms > v_now AND NOT m.dropped),
        v_until,
        ARRAY(
            SELECT w.session_scope FROM {schema}.watchers AS w
            WHERE w.instance_id = p_instance AND w.execution_id = {schema}.latest_execution_id(p_instance)
            ORDER BY w.session_scope, w.session_id
        ),
        ARRAY(
            SELECT w.session_id FROM {schema}.watchers AS w
            WHERE w.instance_id = p_instance AND w.execution_id = {schema}.latest_execution_id(p_instance)
            ORDER BY w.session_scope, w.session_id
        ),
        v_now
    FROM (
        SELECT q.visible_ms, q.dropped, coalesce(q.id = ANY (v_leased), false) AS held
            FROM {schema}.orchestrator_queue AS q
        WHERE q.instance_id = p_instance AND q.state = 1
        UNION ALL
        SELECT q.visible_ms, q.dropped, false FROM {schema}.orchestrator_queue AS q
        WHERE q.instance_id = p_instance AND q.state = 0
    ) AS m;
END
$function$
