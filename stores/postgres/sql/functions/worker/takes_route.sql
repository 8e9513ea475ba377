-- Tells whether a worker is given work that was refused for a handler (S21): it lists the handler itself, or
-- it takes what no live worker lists and no live worker lists it, or it has no row, so that nothing is known
-- of it. The parameters are those of is_listed.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.takes_route(
    p_worker TEXT, p_kind SMALLINT, p_handler TEXT, p_version TEXT, p_tag TEXT, p_now BIGINT,
    p_on_session BOOLEAN, p_pin BIGINT
) RETURNS BOOLEAN
LANGUAGE plpgsql STABLE
AS $function$
#variable_conflict use_column
DECLARE
    v_accepts BOOLEAN;
    v_takes_unlisted BOOLEAN;
BEGIN
    SELECT {schema}.accepts(w.tags, w.serves_sessions, w.engine_lo, w.engine_hi, p_tag, p_on_session, p_pin),
        w.takes_unlisted
    INTO v_accepts, v_takes_unlisted
    FROM {schema}.workers AS w WHERE w.worker_id = p_worker;
    IF NOT FOUND THEN
        RETURN true;
    END IF;
    IF v_accepts AND EXISTS (
        SELECT 1 FROM {schema}.worker_handlers AS h
        WHERE h.worker_id = p_worker AND h.kind = p_kind AND h.handler = p_handler
          AND (p_version IS NULL OR p_version = ANY (h.versions))
    ) THEN
        RETURN true;
    END IF;
    RETURN v_takes_unlisted AND NOT {schema}.is_listed(p_kind, p_handler, p_version, p_tag, p_now,
        p_on_session, p_pin);
END
$function$
