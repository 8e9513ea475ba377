-- Ends leases of instances, work and sessions that end later than any lease can that was granted up to now:
-- the clock of the server was set back since (S16). They expire now, up to 256 of each kind, and the next
-- sweeps handle them like any other. Costs one index lookup per kind if there is none. Returns whether it
-- ended a lease.
-- Each statement reads the longest lease itself, so that it sees with a lease also how long leases could be
-- when it was granted; a row is judged again when it is locked.
-- Locks: `instance_locks`, `lines`, `worker_queue`, `sessions`, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.end_impossible_leases(p_now BIGINT) RETURNS BOOLEAN
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_bound CONSTANT INTEGER := 256;
    -- How far the clock may be set back before leases end early.
    v_tolerance CONSTANT BIGINT := 10000;
    v_late CONSTANT BIGINT := p_now + v_tolerance;
    v_instances TEXT[];
    v_work BIGINT[];
    v_scopes TEXT[];
    v_sessions TEXT[];
BEGIN
    IF coalesce(
        (SELECT 1 FROM {schema}.instance_locks AS l
            WHERE l.lock_token IS NOT NULL
              AND l.locked_until > {schema}.after_ms(v_late, (SELECT f.longest_ms FROM {schema}.floors AS f))
            LIMIT 1),
        (SELECT 1 FROM {schema}.worker_queue AS w
            WHERE w.state = 2
              AND w.locked_until > {schema}.after_ms(v_late, (SELECT f.longest_ms FROM {schema}.floors AS f))
            LIMIT 1),
        (SELECT 1 FROM {schema}.sessions AS s
            WHERE s.held
              AND s.locked_until > {schema}.after_ms(v_late, (SELECT f.longest_ms FROM {schema}.floors AS f))
            LIMIT 1)
    ) IS NULL THEN
        RETURN false;
    END IF;
    v_instances := ARRAY(
        SELECT l.instance_id FROM {schema}.instance_locks AS l
        WHERE l.lock_token IS NOT NULL
          AND l.locked_until > {schema}.after_ms(v_late, (SELECT f.longest_ms FROM {schema}.floors AS f))
        ORDER BY l.locked_until DESC LIMIT v_bound
        FOR UPDATE SKIP LOCKED
    );
    UPDATE {schema}.instance_locks AS l SET locked_until = p_now
    WHERE l.instance_id = ANY (v_instances) AND l.lock_token IS NOT NULL
      AND l.locked_until > {schema}.after_ms(v_late, (SELECT f.longest_ms FROM {schema}.floors AS f));
    PERFORM {schema}.lower_floor('leased_turns', p_now);

    SELECT array_agg(held.instance_id), array_agg(held.session_id) INTO v_scopes, v_sessions
    FROM (
        SELECT s.instance_id, s.session_id FROM {schema}.sessions AS s
        WHERE s.held
          AND s.locked_until > {schema}.after_ms(v_late, (SELECT f.longest_ms FROM {schema}.floors AS f))
        ORDER BY s.locked_until DESC LIMIT v_bound
    ) AS held;
    IF v_sessions IS NOT NULL THEN
        SELECT array_agg(line.scope), array_agg(line.session) INTO v_scopes, v_sessions
        FROM {schema}.hold_lines(v_scopes, v_sessions) AS line;
    END IF;

    v_work := ARRAY(
        SELECT w.id FROM {schema}.worker_queue AS w
        WHERE w.state = 2
          AND w.locked_until > {schema}.after_ms(v_late, (SELECT f.longest_ms FROM {schema}.floors AS f))
        ORDER BY w.locked_until DESC LIMIT v_bound
        FOR UPDATE SKIP LOCKED
    );
    UPDATE {schema}.worker_queue AS w SET locked_until = p_now
    WHERE w.id = ANY (v_work) AND w.state = 2
      AND w.locked_until > {schema}.after_ms(v_late, (SELECT f.longest_ms FROM {schema}.floors AS f));
    PERFORM {schema}.lower_floor('leased_work', p_now);

    -- A session changes only under the lock of its line.
    UPDATE {schema}.sessions AS s SET locked_until = p_now
    FROM unnest(v_scopes, v_sessions) AS line (scope, session)
    WHERE s.instance_id = line.scope AND s.session_id = line.session AND s.held
      AND s.locked_until > {schema}.after_ms(v_late, (SELECT f.longest_ms FROM {schema}.floors AS f));
    PERFORM {schema}.lower_floor('held_sessions', p_now);
    RETURN true;
END
$function$
