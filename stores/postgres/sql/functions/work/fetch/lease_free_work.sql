-- Leases the oldest ready work without a session, of the given tags or of all (p_tags NULL, with p_routes
-- besides, see find_free_work), and ends the mark of a refusal. The places in the result are counted from
-- p_before. p_floor: the id at which the index scans start. With several tags it
-- looks at a bounded number of rows; with p_hold it skips locked rows however many there are. p_bare: only
-- work without terms (S22). The first lease of work is remembered with its time, p_now.
-- Sorting is switched off for the planner, as in find_free_work.
-- Locks: `worker_queue` in the order of id, skipping locked rows; without p_hold only the rows that it
-- leases.
CREATE OR REPLACE FUNCTION {schema}.lease_free_work(
    p_count INTEGER, p_tags TEXT[], p_worker_ids TEXT[], p_before INTEGER, p_until BIGINT,
    p_floor BIGINT DEFAULT 0,
    p_hold BOOLEAN DEFAULT false, p_routes TEXT[] DEFAULT NULL,
    p_now BIGINT DEFAULT NULL, p_bare BOOLEAN DEFAULT false
) RETURNS TABLE (
    kind TEXT, place INTEGER, token TEXT, item TEXT, attempt INTEGER, instance_id TEXT, orchestration TEXT,
    version TEXT,
    traceparent TEXT, session_scope TEXT, session_id TEXT, epoch BIGINT, claim TEXT, claimed_from TEXT,
    since BIGINT, told INTEGER, delivery INTEGER, call TEXT, tries INTEGER, last_error TEXT,
    first_fetched BIGINT
)
LANGUAGE plpgsql
SET enable_sort TO off
AS $function$
#variable_conflict use_column
DECLARE
    v_ids BIGINT[];
    -- Whether one index scan finds the work, so that no more rows are locked than are leased.
    v_is_one CONSTANT BOOLEAN := coalesce(cardinality(p_tags), 1) = 1
        AND coalesce(cardinality(p_routes), 0) = 0;
BEGIN
    IF v_is_one AND p_tags IS NULL AND NOT p_bare THEN
        v_ids := ARRAY(
            SELECT w.id FROM {schema}.worker_queue AS w
            WHERE w.state = 1 AND w.session_id IS NULL AND w.tag < '@' AND w.id - 0 >= p_floor
            ORDER BY w.id - 0 LIMIT p_count
            FOR UPDATE SKIP LOCKED
        );
    ELSIF cardinality(p_tags) = 1 AND NOT p_bare THEN
        v_ids := ARRAY(
            SELECT w.id FROM {schema}.worker_queue AS w
            WHERE w.state = 1 AND w.session_id IS NULL AND w.tag = p_tags[1] AND w.id + 0 >= p_floor
            ORDER BY w.id + 0 LIMIT p_count
            FOR UPDATE SKIP LOCKED
        );
    ELSIF p_hold OR v_is_one THEN
        v_ids := ARRAY(SELECT found.id FROM {schema}.find_free_work(p_count, p_tags, p_floor,
            true, p_routes, p_bare) AS found (id));
    ELSE
        -- Look at twice as many rows as are leased, because other transactions may have locked some.
        v_ids := ARRAY(
            SELECT w.id
            FROM {schema}.find_free_work(2 * p_count, p_tags, p_floor, false, p_routes, p_bare)
                AS found (id)
            CROSS JOIN LATERAL (
                SELECT w.id FROM {schema}.worker_queue AS w
                WHERE w.id = found.id AND w.state + 0 = 1
                FOR UPDATE SKIP LOCKED
            ) AS w
            LIMIT p_count
        );
    END IF;
    IF cardinality(v_ids) = 0 THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH leased AS (
        UPDATE {schema}.worker_queue AS w
        SET state = 2, lock_token = 'lock_' || gen_random_uuid(), locked_until = p_until,
            worker_id = p_worker_ids[taken.place], epoch = NULL, attempt_count = w.attempt_count + 1,
            refused = false, deliveries = least(w.deliveries, 2147483646) + 1,
            first_fetched = coalesce(w.first_fetched, p_now)
        FROM unnest(v_ids) WITH ORDINALITY AS taken (id, place)
        WHERE w.id = taken.id
        RETURNING w.*, taken.place
    )
    SELECT 'lease', p_before + leased.place::integer, leased.lock_token, leased.work_item,
        leased.attempt_count, leased.instance_id,
        i.orchestration_name, i.orchestration_version, leased.traceparent, NULL::text, NULL::text,
        NULL::bigint,
        NULL::text, NULL::text, leased.since, 0, leased.deliveries, leased.call, leased.tries,
        leased.last_error, leased.first_fetched
    FROM leased LEFT JOIN {schema}.instances AS i ON i.instance_id = leased.instance_id
    ORDER BY leased.place;
END
$function$
