-- Ends leases of instances, work and sessions that end later than any lease can that was granted up to now:
-- the clock of the server was set back since (S16). They expire now, up to 256 of each kind, and the next
-- sweeps handle them like any other. Costs one index lookup per kind if there is none. Returns whether it
-- ended a lease.
-- Locks: `instance_locks`, `lines`, `worker_queue`, `sessions`, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.end_impossible_leases(p_now BIGINT) RETURNS BOOLEAN
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_bound CONSTANT INTEGER := 256;
    -- How far the clock may be set back before leases end early.
    v_tolerance CONSTANT BIGINT := 10000;
    v_latest CONSTANT BIGINT := {schema}.after_ms(p_now + v_tolerance,
        (SELECT f.longest_ms FROM {schema}.floors AS f));
    v_scopes TEXT[];
    v_sessions TEXT[];
BEGIN
    IF coalesce(
        (SELECT 1 FROM {schema}.instance_locks AS l
            WHERE l.lock_token IS NOT NULL AND l.locked_until > v_latest LIMIT 1),
        (SELECT 1 FROM {schema}.worker_queue AS w WHERE w.state = 2 AND w.locked_until > v_latest LIMIT 1),
        (SELECT 1 FROM {schema}.sessions AS s WHERE s.held AND s.locked_until > v_latest LIMIT 1)
    ) IS NULL THEN
        RETURN false;
    END IF;
    UPDATE {schema}.instance_locks AS l SET locked_until = p_now
    WHERE l.instance_id = ANY (ARRAY(
        SELECT l.instance_id FROM {schema}.instance_locks AS l
        WHERE l.lock_token IS NOT NULL AND l.locked_until > v_latest
        ORDER BY l.locked_until DESC LIMIT v_bound
        FOR UPDATE SKIP LOCKED
    ));
    PERFORM {schema}.lower_floor('leased_turns', p_now);

    SELECT array_agg(held.instance_id), array_agg(held.session_id) INTO v_scopes, v_sessions
    FROM (
        SELECT s.instance_id, s.session_id FROM {schema}.sessions AS s
        WHERE s.held AND s.locked_until > v_latest
        ORDER BY s.locked_until DESC LIMIT v_bound
    ) AS held;
    IF v_sessions IS NOT NULL THEN
        SELECT array_agg(line.scope), array_agg(line.session) INTO v_scopes, v_sessions
        FROM {schema}.hold_lines(v_scopes, v_sessions) AS line;
    END IF;

    UPDATE {schema}.worker_queue AS w SET locked_until = p_now
    WHERE w.id = ANY (ARRAY(
        SELECT w.id FROM {schema}.worker_queue AS w
        WHERE w.state = 2 AND w.locked_until > v_latest
        ORDER BY w.locked_until DESC LIMIT v_bound
        FOR UPDATE SKIP LOCKED
    ));
    PERFORM {schema}.lower_floor('leased_work', p_now);

    UPDATE {schema}.sessions AS s SET locked_until = p_now
    FROM unnest(v_scopes, v_sessions) AS line (scope, session)
    WHERE s.instance_id = line.scope AND s.session_id = line.session AND s.held
      AND s.locked_until > v_latest;
    PERFORM {schema}.lower_floor('held_sessions', p_now);
    RETURN true;
END
$function$
