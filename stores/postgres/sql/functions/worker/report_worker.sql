-- Writes the row of a worker and the handlers that it lists, and tidies up behind workers that are gone.
-- p_tags: the stored forms of the tags that it accepts, NULL for all. p_serves_sessions: whether it takes
-- work of sessions. p_engine_lo and p_engine_hi: ranges of pins of the engine versions that it runs, NULL for
-- all. p_kinds and p_handlers have one element per handler (kind 0: orchestration, 1: activity); p_versions
-- are versions of the handler with the number p_version_of, counted from 1. p_report: the whole report as
-- JSON, for lists.
-- Work that was refused for a listed handler becomes due, up to a bound: see release_refused. Returns whether
-- waiting fetches should look (something became due, or the answer to who may take what has changed), and
-- whether more is left to release.
-- A report is known if the one before it, half a minute ago at most, had the same `listing`: a refusal that
-- runs beside it sees the worker as live and its handlers as listed. Any other report takes the advisory lock
-- of the workers for itself, so that each refusal either sees it or is seen by it (decision 0011).
-- Locks: the advisory lock of the workers, unless the report is known; the row of the worker; then those of
-- tidy_workers and release_refused.
CREATE OR REPLACE FUNCTION {schema}.report_worker(
    p_worker TEXT, p_tags TEXT[], p_takes_unlisted BOOLEAN, p_is_stopped BOOLEAN, p_report TEXT,
    p_kinds INTEGER[], p_handlers TEXT[], p_version_of INTEGER[], p_versions TEXT[],
    p_now_ms BIGINT DEFAULT NULL, p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL,
    p_serves_sessions BOOLEAN DEFAULT true, p_engine_lo BIGINT[] DEFAULT NULL,
    p_engine_hi BIGINT[] DEFAULT NULL
) RETURNS TABLE (wakes BOOLEAN, is_more BOOLEAN)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_known_ms CONSTANT BIGINT := 30000;
    -- Everything by which work is routed.
    v_listing CONSTANT TEXT := encode(sha256(convert_to(ROW(
        p_tags, p_serves_sessions, p_engine_lo, p_engine_hi, p_takes_unlisted, p_is_stopped, p_kinds,
        p_handlers, p_version_of, p_versions
    )::text, 'UTF8')), 'hex');
    v_before {schema}.workers;
    v_changed BIGINT;
    v_is_changed BOOLEAN;
    v_released INTEGER := 0;
BEGIN
    PERFORM 1 FROM {schema}.workers AS w
    WHERE w.worker_id = p_worker AND w.listing = v_listing AND w.is_listed
      AND w.last_seen_ms > v_now - v_known_ms
    FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('{schema}.workers', 0));
    END IF;
    SELECT w.* INTO v_before FROM {schema}.workers AS w WHERE w.worker_id = p_worker FOR UPDATE;
    v_is_changed := v_before.worker_id IS NULL OR v_before.tags IS DISTINCT FROM p_tags
        OR v_before.serves_sessions <> p_serves_sessions
        OR (v_before.engine_lo, v_before.engine_hi) IS DISTINCT FROM (p_engine_lo, p_engine_hi)
        OR v_before.is_stopped <> p_is_stopped OR v_before.takes_unlisted <> p_takes_unlisted
        OR v_before.is_listed = p_is_stopped;
    INSERT INTO {schema}.workers AS w
        (worker_id, tags, serves_sessions, engine_lo, engine_hi, takes_unlisted, is_stopped, since_ms,
        last_seen_ms, is_listed, listing, report)
    VALUES (p_worker, p_tags, p_serves_sessions, p_engine_lo, p_engine_hi, p_takes_unlisted, p_is_stopped,
        v_now, v_now, NOT p_is_stopped, v_listing, p_report)
    ON CONFLICT (worker_id) DO UPDATE
    SET tags = excluded.tags, serves_sessions = excluded.serves_sessions, engine_lo = excluded.engine_lo,
        engine_hi = excluded.engine_hi, takes_unlisted = excluded.takes_unlisted,
        is_stopped = excluded.is_stopped, last_seen_ms = excluded.last_seen_ms,
        is_listed = excluded.is_listed, listing = excluded.listing, report = excluded.report;

    WITH listed AS (
        SELECT h.kind::smallint AS kind, h.handler,
            coalesce(array_agg(DISTINCT v.version ORDER BY v.version) FILTER (WHERE v.version IS NOT NULL),
                '{}') AS versions
        FROM unnest(p_kinds, p_handlers) WITH ORDINALITY AS h (kind, handler, place)
        LEFT JOIN unnest(p_version_of, p_versions) AS v (of, version) ON v.of = h.place
        GROUP BY 1, 2
    ), gone AS (
        DELETE FROM {schema}.worker_handlers AS h
        WHERE h.worker_id = p_worker AND NOT EXISTS (
            SELECT 1 FROM listed AS l WHERE l.kind = h.kind AND l.handler = h.handler
        )
        RETURNING 1
    ), made AS (
        INSERT INTO {schema}.worker_handlers AS h (worker_id, kind, handler, versions, is_listed)
        SELECT p_worker, l.kind, l.handler, l.versions, NOT p_is_stopped FROM listed AS l
        ON CONFLICT (worker_id, kind, handler) DO UPDATE
        SET versions = excluded.versions, is_listed = excluded.is_listed
        WHERE h.versions <> excluded.versions OR h.is_listed <> excluded.is_listed
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM made) INTO v_changed;

    PERFORM {schema}.tidy_workers(v_now);
    PERFORM {schema}.forget_leases(v_now);
    IF NOT p_is_stopped THEN
        v_released := {schema}.release_refused(p_worker, v_now);
    END IF;
    wakes := v_released > 0 OR ((v_is_changed OR v_changed > 0) AND (
        EXISTS (SELECT 1 FROM {schema}.pins AS p WHERE p.pin < -1) OR EXISTS (SELECT 1 FROM {schema}.routes)
    ));
    is_more := v_released >= {schema}.release_bound();
    IF wakes THEN
        PERFORM {schema}.notify(p_notify, p_me);
    END IF;
    RETURN NEXT;
END
$function$
