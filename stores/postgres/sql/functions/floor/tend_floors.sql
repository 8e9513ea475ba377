-- Raises the floors, so that fetches do not step over index entries of processed rows. A runnable row below a
-- floor must have its key in `beneath`, or no fetch would find it. Transactions that are still running may
-- have written such rows, so the floors are raised in three steps, each in another transaction:
-- 1. Higher floors are proposed. From then on lower_floor inserts keys below the proposed floors into
--    `beneath`.
-- 2. A transaction that sees the proposal and has no transaction id yet takes one and stores it as the
--    horizon. Every transaction with a higher id sees the proposal too.
-- 3. When all transactions with lower ids have ended, the lowest key of a runnable row is looked up. Rows
--    that this look cannot see are in `beneath`. The floors are raised up to that key.
-- Once a minute it also looks at the indexes from their beginning, and inserts runnable keys below the floors
-- into `beneath`: rows that were changed by hand wait a minute at most and not for ever (S18).
-- Locks: the row of `floors`; if another transaction has locked it, the function does nothing.
CREATE OR REPLACE FUNCTION {schema}.tend_floors(p_now BIGINT, p_turn_ms BIGINT, p_work_ms BIGINT,
    p_session_ms BIGINT)
RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    -- Rows newer than this often become runnable again, so the floors stay below them.
    v_new_ids CONSTANT BIGINT := 512;
    v_new_ms CONSTANT BIGINT := 1000;
    -- The longest lease duration that the floors take into account.
    v_long_ms CONSTANT BIGINT := 3600000;
    -- The most keys that one raise deletes from `beneath`; later raises delete the rest.
    v_bound CONSTANT INTEGER := 10000;
    v_has_number BOOLEAN := pg_current_xact_id_if_assigned() IS NOT NULL;
    v_seen BIGINT := (SELECT f.cycle FROM {schema}.floors AS f);
    v_floors {schema}.floors;
    v_least {schema}.floors;
    v_named {schema}.floors;
BEGIN
    SELECT f.* INTO v_floors FROM {schema}.floors AS f FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;

    IF {schema}.is_healing_due(v_floors.healed_ms, p_now) THEN
        v_least := {schema}.least_keys(0, 0, 0, 0, 0, 0, 0, 0);
        INSERT INTO {schema}.beneath (kind, key)
        SELECT found.kind, found.key FROM (VALUES
            ('turns', v_least.turns, v_floors.turns),
            ('work', v_least.work, v_floors.work),
            ('heads', v_least.heads, v_floors.heads),
            ('due_messages', v_least.due_messages, v_floors.due_messages),
            ('leased_turns', v_least.leased_turns, v_floors.leased_turns),
            ('due_work', v_least.due_work, v_floors.due_work),
            ('leased_work', v_least.leased_work, v_floors.leased_work),
            ('held_sessions', v_least.held_sessions, v_floors.held_sessions)
        ) AS found (kind, key, floor)
        WHERE found.key < found.floor;
        UPDATE {schema}.floors AS f SET healed_ms = p_now;
    END IF;

    IF v_floors.cycle IS NULL THEN
        -- New leases expire after now plus the usual duration, so the floor can be that time. While shorter
        -- leases are in use (there are keys in `beneath`), the floor is now.
        UPDATE {schema}.floors AS f
        SET cycle = nextval('{schema}.numbers'),
            next_turns = greatest(pg_sequence_last_value('{schema}.orchestrator_queue_id_seq') - v_new_ids,
                0),
            next_work = greatest(pg_sequence_last_value('{schema}.worker_queue_id_seq') - v_new_ids, 0),
            next_heads = greatest(pg_sequence_last_value('{schema}.worker_queue_id_seq') - v_new_ids, 0),
            next_due_messages = p_now,
            next_due_work = p_now,
            next_leased_turns = p_now + CASE
                WHEN EXISTS (SELECT 1 FROM {schema}.beneath AS b WHERE b.kind = 'leased_turns') THEN 0
                ELSE greatest(least(coalesce(p_turn_ms, f.turn_ms), v_long_ms) - v_new_ms, 0)
            END,
            next_leased_work = p_now + CASE
                WHEN EXISTS (SELECT 1 FROM {schema}.beneath AS b WHERE b.kind = 'leased_work') THEN 0
                ELSE greatest(least(coalesce(p_work_ms, f.work_ms), v_long_ms) - v_new_ms, 0)
            END,
            next_held_sessions = p_now + CASE
                WHEN EXISTS (SELECT 1 FROM {schema}.beneath AS b WHERE b.kind = 'held_sessions') THEN 0
                ELSE greatest(least(coalesce(p_session_ms, f.session_ms), v_long_ms) - v_new_ms, 0)
            END,
            drawn = {schema}.ids_drawn(),
            at_ms = p_now;
    ELSIF v_floors.horizon IS NULL THEN
        IF v_seen = v_floors.cycle AND NOT v_has_number THEN
            UPDATE {schema}.floors AS f SET horizon = pg_current_xact_id();
        END IF;
    ELSIF {schema}.is_past(v_floors.horizon) THEN
        -- The deleted keys are looked up again: the look below starts at the lowest of them.
        WITH named AS (
            DELETE FROM {schema}.beneath AS b
            WHERE b.ctid = ANY (ARRAY(SELECT b.ctid FROM {schema}.beneath AS b ORDER BY b.kind, b.key
                LIMIT v_bound))
            RETURNING b.kind, b.key
        )
        SELECT min(named.key) FILTER (WHERE named.kind = 'turns'),
            min(named.key) FILTER (WHERE named.kind = 'work'),
            min(named.key) FILTER (WHERE named.kind = 'heads'),
            min(named.key) FILTER (WHERE named.kind = 'due_messages'),
            min(named.key) FILTER (WHERE named.kind = 'leased_turns'),
            min(named.key) FILTER (WHERE named.kind = 'due_work'),
            min(named.key) FILTER (WHERE named.kind = 'leased_work'),
            min(named.key) FILTER (WHERE named.kind = 'held_sessions')
        INTO v_named.turns, v_named.work, v_named.heads, v_named.due_messages, v_named.leased_turns,
            v_named.due_work,
            v_named.leased_work, v_named.held_sessions
        FROM named;
        v_least := {schema}.least_keys(
            least(v_floors.turns, v_named.turns), least(v_floors.work, v_named.work),
            least(v_floors.heads, v_named.heads),
            least(v_floors.due_messages, v_named.due_messages),
            least(v_floors.leased_turns, v_named.leased_turns),
            least(v_floors.due_work, v_named.due_work), least(v_floors.leased_work, v_named.leased_work),
            least(v_floors.held_sessions, v_named.held_sessions)
        );
        UPDATE {schema}.floors AS f
        SET cycle = NULL, horizon = NULL,
            turns = least(f.next_turns, v_least.turns), next_turns = NULL,
            work = least(f.next_work, v_least.work), next_work = NULL,
            heads = least(f.next_heads, v_least.heads), next_heads = NULL,
            due_messages = least(f.next_due_messages, v_least.due_messages), next_due_messages = NULL,
            leased_turns = least(f.next_leased_turns, v_least.leased_turns), next_leased_turns = NULL,
            due_work = least(f.next_due_work, v_least.due_work), next_due_work = NULL,
            leased_work = least(f.next_leased_work, v_least.leased_work), next_leased_work = NULL,
            held_sessions = least(f.next_held_sessions, v_least.held_sessions), next_held_sessions = NULL;
    END IF;
    UPDATE {schema}.floors AS f
    SET turn_ms = coalesce(p_turn_ms, f.turn_ms), work_ms = coalesce(p_work_ms, f.work_ms),
        session_ms = coalesce(p_session_ms, f.session_ms)
    WHERE f.turn_ms <> p_turn_ms OR f.work_ms <> p_work_ms OR f.session_ms <> p_session_ms;
END
$function$
