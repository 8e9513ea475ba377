-- Refuses a leased instance, because the caller lacks its handler (S4, S21). If a live worker lists the
-- handler, the lease is abandoned uncounted and without a delay, else as p_delay_ms and p_uncounted say, and
-- the delay ends when a worker lists the handler. From then on the instance has a route, unless a message
-- that needs no code is visible; then there is no delay either. p_handler is the key of the handler,
-- p_handler_version NULL if any version does, p_route a hash of both.
-- Returns `ok`, `ended` (the lease has expired) or `lost` (the token is unknown), the instance, and whether
-- the handler is listed.
-- Locks: `instance_locks` of the instance, then the advisory lock of the
-- workers and `pins`, shared.
CREATE OR REPLACE FUNCTION {schema}.refuse_turn(
    p_token TEXT, p_handler TEXT, p_handler_version TEXT, p_route TEXT, p_delay_ms BIGINT,
    p_uncounted BOOLEAN, p_now_ms BIGINT DEFAULT NULL, p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL
) RETURNS TABLE (code TEXT, instance_id TEXT, listed BOOLEAN)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT;
    v_lock {schema}.instance_locks;
    v_pin BIGINT;
    v_delay_ms BIGINT;
    v_is_codeless BOOLEAN;
BEGIN
    SELECT l.* INTO v_lock FROM {schema}.instance_locks AS l WHERE l.lock_token = p_token FOR UPDATE;
    v_now := {schema}.now_ms(p_now_ms);
    code := {schema}.code_of_lease(v_lock.locked_until, v_now);
    instance_id := v_lock.instance_id;
    listed := false;
    IF code <> 'ok' THEN
        RETURN NEXT;
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('{schema}.workers', 0));
    v_pin := coalesce((SELECT p.version FROM {schema}.pins AS p WHERE p.pin = v_lock.pin), v_lock.pin);
    listed := {schema}.is_listed(0::smallint, p_handler, p_handler_version, NULL, v_now, false, v_pin);
    v_is_codeless := (
        SELECT 1 FROM {schema}.orchestrator_queue AS q
        WHERE q.instance_id = v_lock.instance_id AND q.codeless AND q.visible_ms <= v_now
        LIMIT 1
    ) IS NOT NULL;
    v_delay_ms := CASE WHEN NOT listed AND NOT v_is_codeless THEN p_delay_ms END;
    PERFORM {schema}.abandon_turns(ARRAY[p_token], ARRAY[v_delay_ms], ARRAY[listed OR p_uncounted], v_now);
    IF NOT v_is_codeless THEN
        v_pin := {schema}.routed_pin(v_pin, p_handler, p_handler_version, p_route);
    END IF;
    UPDATE {schema}.instance_locks AS l
    SET pin = v_pin,
        refused = CASE WHEN v_delay_ms IS NULL THEN l.refused ELSE ARRAY(
            SELECT unnest(l.refused) UNION SELECT unnest(v_lock.leased) ORDER BY 1
        ) END
    WHERE l.instance_id = v_lock.instance_id;
    PERFORM {schema}.notify(p_notify, p_me);
    RETURN NEXT;
END
$function$
