-- Tidies up behind workers, a bounded number of rows per call: the handlers of workers that are silent for
-- more than a minute count no longer for others, rows that are a day old are deleted, and so are routes that
-- no instance and no work has.
-- Locks: `workers`, then `pins` and `routes`, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.tidy_workers(p_now BIGINT) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_bound CONSTANT INTEGER := 64;
    v_live_ms CONSTANT BIGINT := 60000;
    v_kept_ms CONSTANT BIGINT := 86400000;
    v_workers TEXT[];
    v_pins BIGINT[];
    v_tags TEXT[];
BEGIN
    v_workers := ARRAY(
        SELECT w.worker_id FROM {schema}.workers AS w
        WHERE w.is_listed AND w.last_seen_ms <= p_now - v_live_ms
        ORDER BY w.last_seen_ms LIMIT v_bound
        FOR UPDATE SKIP LOCKED
    );
    IF cardinality(v_workers) > 0 THEN
        UPDATE {schema}.workers AS w SET is_listed = false WHERE w.worker_id = ANY (v_workers);
        UPDATE {schema}.worker_handlers AS h SET is_listed = false
        WHERE h.worker_id = ANY (v_workers) AND h.is_listed;
    END IF;

    v_workers := ARRAY(
        SELECT w.worker_id FROM {schema}.workers AS w
        WHERE w.last_seen_ms <= p_now - v_kept_ms
        ORDER BY w.last_seen_ms LIMIT v_bound
        FOR UPDATE SKIP LOCKED
    );
    IF cardinality(v_workers) > 0 THEN
        DELETE FROM {schema}.worker_handlers AS h WHERE h.worker_id = ANY (v_workers);
        DELETE FROM {schema}.workers AS w WHERE w.worker_id = ANY (v_workers);
    END IF;

    -- A transaction that gives an instance or work a route has locked the row of the route, so it is skipped
    -- here, or its change is seen by the statement that deletes.
    v_pins := ARRAY(
        SELECT p.pin FROM {schema}.pins AS p
        WHERE p.pin < -1 AND (
            SELECT 1 FROM {schema}.instance_locks AS l WHERE l.pin = p.pin AND l.pin < -1 LIMIT 1
        ) IS NULL
        LIMIT v_bound
        FOR UPDATE SKIP LOCKED
    );
    IF cardinality(v_pins) > 0 THEN
        DELETE FROM {schema}.pins AS p
        WHERE p.pin = ANY (v_pins) AND (
            SELECT 1 FROM {schema}.instance_locks AS l WHERE l.pin = p.pin AND l.pin < -1 LIMIT 1
        ) IS NULL;
    END IF;
    v_tags := ARRAY(
        SELECT r.tag FROM {schema}.routes AS r
        WHERE (
            SELECT 1 FROM {schema}.worker_queue AS w WHERE w.tag = r.tag AND w.tag >= '@' LIMIT 1
        ) IS NULL
        LIMIT v_bound
        FOR UPDATE SKIP LOCKED
    );
    IF cardinality(v_tags) > 0 THEN
        DELETE FROM {schema}.routes AS r
        WHERE r.tag = ANY (v_tags) AND (
            SELECT 1 FROM {schema}.worker_queue AS w WHERE w.tag = r.tag AND w.tag >= '@' LIMIT 1
        ) IS NULL;
    END IF;
END
$function$
