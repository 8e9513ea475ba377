-- Tells whether a live worker lists a handler: one that reported within the last minute and has not stopped
-- (S21). p_kind: 0 for an orchestration, 1 for an activity. p_version NULL: any version does. p_tag: the
-- plain tag of an activity; NULL for an orchestration. p_on_session: whether the activity is on a session.
-- p_pin: the engine version of an execution, -1 for none; NULL for an activity. The worker must accept all.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.is_listed(
    p_kind SMALLINT, p_handler TEXT, p_version TEXT, p_tag TEXT, p_now BIGINT, p_on_session BOOLEAN,
    p_pin BIGINT
) RETURNS BOOLEAN
LANGUAGE plpgsql STABLE
AS $function$
#variable_conflict use_column
DECLARE
    v_live_ms CONSTANT BIGINT := 60000;
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM {schema}.worker_handlers AS h
        CROSS JOIN LATERAL (
            SELECT w.tags, w.serves_sessions, w.engine_lo, w.engine_hi FROM {schema}.workers AS w
            WHERE w.worker_id = h.worker_id AND NOT w.is_stopped AND w.last_seen_ms + v_live_ms > p_now
            OFFSET 0
        ) AS w
        WHERE h.is_listed AND h.kind = p_kind AND h.handler = p_handler
          AND (p_version IS NULL OR p_version = ANY (h.versions))
          AND {schema}.accepts(w.tags, w.serves_sessions, w.engine_lo, w.engine_hi, p_tag, p_on_session,
              p_pin)
    );
END
$function$
