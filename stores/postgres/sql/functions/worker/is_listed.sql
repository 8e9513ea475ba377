-- Tells whether a live worker lists a handler: one that reported within the last minute and has not stopped
-- (S21). p_kind: 0 for an orchestration, 1 for an activity. p_version NULL: any version does. p_tag: the
-- plain tag of an activity, which the worker must accept; NULL for an orchestration.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.is_listed(
    p_kind SMALLINT, p_handler TEXT, p_version TEXT, p_tag TEXT, p_now BIGINT
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
            SELECT w.tags FROM {schema}.workers AS w
            WHERE w.worker_id = h.worker_id AND NOT w.is_stopped AND w.last_seen_ms + v_live_ms > p_now
            OFFSET 0
        ) AS w
        WHERE h.is_listed AND h.kind = p_kind AND h.handler = p_handler
          AND (p_version IS NULL OR p_version = ANY (h.versions))
          AND (p_tag IS NULL OR w.tags IS NULL OR p_tag = ANY (w.tags))
    );
END
$function$
