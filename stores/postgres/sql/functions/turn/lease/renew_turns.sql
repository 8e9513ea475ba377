-- Renews leases of instances (S4). The leases are judged by the time after they were locked, because a lease
-- may expire while the call waits. Returns one row per token, in order: `ok`, `ended` (the lease has expired;
-- with its instance) or `lost` (the token is unknown).
-- Locks: `instance_locks` in the order of instance_id.
CREATE OR REPLACE FUNCTION {schema}.renew_turns(p_tokens TEXT[], p_extend_ms BIGINT[], p_now_ms BIGINT)
RETURNS TABLE (code TEXT, instance_id TEXT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT;
BEGIN
    PERFORM 1 FROM {schema}.instance_locks AS l WHERE l.lock_token = ANY (p_tokens) ORDER BY l.instance_id
        FOR UPDATE;
    v_now := {schema}.now_ms(p_now_ms);

    RETURN QUERY SELECT {schema}.code_of_lease(l.locked_until, v_now), l.instance_id
    FROM unnest(p_tokens) WITH ORDINALITY AS t (token, place)
    LEFT JOIN {schema}.instance_locks AS l ON l.lock_token = t.token AND l.lock_token = ANY (p_tokens)
    ORDER BY t.place;

    -- If a token stands in the array more than once, the last element counts.
    UPDATE {schema}.instance_locks AS l
    SET locked_until = {schema}.after_ms(v_now, t.extend_ms)
    FROM (
        SELECT DISTINCT ON (t.token) t.token, t.extend_ms
        FROM unnest(p_tokens, p_extend_ms) WITH ORDINALITY AS t (token, extend_ms, place)
        ORDER BY t.token, t.place DESC
    ) AS t
    WHERE l.lock_token = t.token AND l.lock_token = ANY (p_tokens) AND l.locked_until > v_now;
    PERFORM {schema}.lengthen_leases((SELECT max(e.ms) FROM unnest(p_extend_ms) AS e (ms)));
    PERFORM {schema}.lower_floor('leased_turns', {schema}.after_ms(v_now,
        (SELECT min(e.ms) FROM unnest(p_extend_ms) AS e (ms))));
END
$function$
