-- Leases up to p_count ready instances, those with the oldest messages first (S1, S2, S18). Returns with each
-- lease its messages and the state of its current execution. Messages and leases that became due by time are
-- moved first. p_lo and p_hi are ranges of pins that the caller can run, see ready_turns. p_worker is the
-- worker that asks: instances with a route that it does not take are left out (S21); NULL takes all.
-- Rows by kind: `turn` is a lease. `stray` reports `dropped` messages that were deleted because their
-- instance does not exist (S17). `none` is returned if fewer leases were found than asked for: `again` tells
-- that something is ready but locked by another transaction, `next_ms` is the next moment at which something
-- becomes ready by time. One call may serve many callers, and those without a lease have to know when to look
-- again.
-- With p_unsynced the transaction does not wait for the disk. If a crash of the server loses a lease, its
-- messages are fetched again, and its token, which is random, is unknown (S5).
-- With p_careful the item of a message that the database cannot read is NULL: for a caller whose fetch such a
-- message has failed (S15). `failures` are the failures beside the completions of activities (S22).
-- Sorting is switched off for the planner, so that it reads the index in its order even when statistics say
-- that few instances are ready.
-- Locks: `instance_locks` of the instances that it leases, skipping locked rows: it never waits.
CREATE OR REPLACE FUNCTION {schema}.fetch_turns(
    p_now_ms BIGINT, p_lock_ms BIGINT, p_count INTEGER, p_lo BIGINT[] DEFAULT NULL,
    p_hi BIGINT[] DEFAULT NULL,
    p_unsynced BOOLEAN DEFAULT false, p_careful BOOLEAN DEFAULT false, p_worker TEXT DEFAULT NULL
) RETURNS TABLE (
    kind TEXT, token TEXT, instance_id TEXT, name TEXT, version TEXT, execution_id BIGINT, run_id BIGINT,
    last_event_id BIGINT, has_kv BOOLEAN, now BIGINT, ids BIGINT[], items TEXT[], attempts INTEGER[],
    traceparents TEXT[], rivals BIGINT[], failures TEXT[],
    dropped BIGINT, again BOOLEAN, next_ms BIGINT
)
LANGUAGE plpgsql
{planner}
SET enable_sort TO off
AS $function$
#variable_conflict use_column
DECLARE
    -- The most rounds in which a fetch handles strays and messages that wait for their start.
    v_rounds CONSTANT INTEGER := 64;
    -- The most locked instances that a fetch looks past.
    v_max_page CONSTANT INTEGER := 4096;
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_floors {schema}.floors := {schema}.read_floors(v_now, p_lock_ms);
    v_left INTEGER := p_count;
    v_page INTEGER := 2 * p_count + 32;
    v_again BOOLEAN;
    v_taken TEXT[];
    v_firm TEXT[];
    -- Those with messages of former lives of parents.
    v_orphaned TEXT[];
    v_leased INTEGER;
    -- Routed pins that the worker does not take.
    v_shut BIGINT[] := CASE WHEN p_worker IS NOT NULL THEN {schema}.shut_pins(p_worker, v_now) END;
BEGIN
    IF p_unsynced THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF (
        SELECT coalesce(
            (SELECT 1 FROM {schema}.orchestrator_queue AS q
                WHERE q.state = 0 AND q.visible_ms BETWEEN v_floors.due_messages AND v_now LIMIT 1),
            CASE WHEN v_floors.leased_turns <= v_now THEN (
                SELECT 1 FROM {schema}.instance_locks AS l
                WHERE l.lock_token IS NOT NULL AND l.locked_until BETWEEN v_floors.leased_turns AND v_now
                    LIMIT 1
            ) END
        )
    ) = 1 THEN
        PERFORM {schema}.sweep_turns(v_now, v_floors.due_messages, v_floors.leased_turns);
        -- The sweep may have made rows runnable below the floors.
        v_floors := {schema}.read_floors(v_now);
    END IF;
    FOR v_round IN 1..v_rounds LOOP
        -- Other transactions may have locked the oldest instances, so it looks at more than it leases. It
        -- locks them in order until it has enough.
        SELECT array_agg(t.id), array_agg(t.id) FILTER (WHERE t.firm),
            array_agg(t.id) FILTER (WHERE t.orphaned)
        INTO v_taken, v_firm, v_orphaned
        FROM (
            SELECT r.instance_id AS id, coalesce(
                (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = r.instance_id),
                (SELECT 1 FROM {schema}.orchestrator_queue AS q
                    WHERE q.instance_id = r.instance_id AND q.starts AND q.state = 1 LIMIT 1),
                (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = r.instance_id LIMIT 1)
            ) = 1 AS firm, (
                SELECT 1 FROM {schema}.orchestrator_queue AS q
                WHERE q.instance_id || '' = r.instance_id AND q.parent_life IS NOT NULL
                  AND (q.state - 0 = 1 OR q.visible_ms <= v_now)
                  AND {schema}.is_of_former_life(q.parent_instance_id, q.parent_life, q.starts)
                LIMIT 1
            ) = 1 AS orphaned
            FROM {schema}.ready_turns(p_lo, p_hi, v_page, v_floors.turns, v_shut) AS r
            CROSS JOIN LATERAL (
                SELECT 1 FROM {schema}.instance_locks AS l
                WHERE l.instance_id = r.instance_id
                  AND (l.lock_token IS NULL AND l.head IS NOT NULL) IS TRUE AND l.pin = r.pin
                FOR UPDATE SKIP LOCKED
            ) AS taken
            LIMIT v_left
        ) AS t;
        IF v_taken IS NULL THEN
            v_again := {schema}.has_turn(v_now, p_lo, p_hi, v_floors.turns, v_floors.due_messages,
                v_floors.leased_turns, v_shut);
            -- An open transaction that has locked a whole page must not hide the instances after it (S18).
            EXIT WHEN NOT v_again OR v_page >= v_max_page;
            EXIT WHEN (SELECT count(*) FROM {schema}.ready_turns(p_lo, p_hi, v_page,
                v_floors.turns, v_shut)) < v_page;
            v_page := least(16 * v_page, v_max_page);
            v_again := NULL;
            CONTINUE;
        END IF;
        IF v_orphaned IS NOT NULL THEN
            RETURN QUERY SELECT 'stray'::text, NULL::text, s.instance_id, NULL::text, NULL::text,
                NULL::bigint, NULL::bigint, NULL::bigint, false, v_now, NULL::bigint[], NULL::text[],
                NULL::integer[], NULL::text[], NULL::bigint[], NULL::text[], s.dropped, false, NULL::bigint
            FROM {schema}.settle_orphans(v_orphaned, v_now) AS s;
            CONTINUE;
        END IF;
        v_leased := 0;
        IF v_firm IS NOT NULL THEN
            RETURN QUERY SELECT 'turn'::text, t.*, NULL::bigint, false, NULL::bigint
            FROM {schema}.lease_turns(v_firm, {schema}.after_ms(v_now, p_lock_ms), v_now,
                p_careful => p_careful) AS t;
            GET DIAGNOSTICS v_leased = ROW_COUNT;
            PERFORM {schema}.lower_floor('leased_turns', {schema}.after_ms(v_now, p_lock_ms));
            v_left := v_left - v_leased;
        END IF;
        EXIT WHEN v_leased = cardinality(v_taken);

        -- Where one instance cannot be leased there may be many: handle them together.
        RETURN QUERY SELECT 'stray'::text, NULL::text, s.instance_id, NULL::text, NULL::text, NULL::bigint,
            NULL::bigint,
            NULL::bigint, false, v_now, NULL::bigint[], NULL::text[], NULL::integer[], NULL::text[],
            NULL::bigint[], NULL::text[], s.dropped, false, NULL::bigint
        FROM {schema}.settle_strays(v_taken, v_now) AS s;
        RETURN QUERY SELECT 'stray'::text, NULL::text, s.instance_id, NULL::text, NULL::text, NULL::bigint,
            NULL::bigint,
            NULL::bigint, false, v_now, NULL::bigint[], NULL::text[], NULL::integer[], NULL::text[],
            NULL::bigint[], NULL::text[], s.dropped, false, NULL::bigint
        FROM {schema}.settle_strays({schema}.lock_strays(p_lo, p_hi, v_floors.turns, v_shut), v_now) AS s;
        EXIT WHEN v_left = 0;
    END LOOP;

    IF v_left = p_count AND v_again IS NOT TRUE THEN
        v_again := {schema}.end_impossible_leases(v_now) OR v_again;
    END IF;
    IF v_left > 0 OR p_count = 0 THEN
        RETURN QUERY SELECT 'none'::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::bigint,
            NULL::bigint,
            NULL::bigint, false, v_now, NULL::bigint[], NULL::text[], NULL::integer[], NULL::text[],
            NULL::bigint[], NULL::text[], NULL::bigint,
            coalesce(v_again, {schema}.has_turn(
                v_now, p_lo, p_hi, v_floors.turns, v_floors.due_messages, v_floors.leased_turns, v_shut
            )),
            -- The new leases may expire first, before the floor that was read.
            least({schema}.next_turn_moment(v_now, CASE
                WHEN v_left < p_count THEN least(v_floors.leased_turns, {schema}.after_ms(v_now, p_lock_ms))
                ELSE v_floors.leased_turns
            END), CASE WHEN v_shut IS NOT NULL THEN {schema}.next_silence(v_now) END);
    END IF;
END
$function$
