-- Abandons leases of instances. Changes only the leased messages (S4, S6): with a delay they become visible
-- after it, without one their visible times stay; their places in a batch stay either way (S2). With
-- p_uncounted the delivery is not counted. Returns one row per token, in order: `ok`, `ended` (the lease has
-- expired; with its instance) or `lost` (the token is unknown, or stands in the array a second time).
-- With p_ended_too an expired lease is abandoned like a live one, unless a sweep has already ended it. This
-- is for leases whose caller did not receive them (S5).
-- Locks: `instance_locks` in the order of instance_id.
CREATE OR REPLACE FUNCTION {schema}.abandon_turns(
    p_tokens TEXT[], p_delay_ms BIGINT[], p_uncounted BOOLEAN[], p_now_ms BIGINT,
    p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL, p_ended_too BOOLEAN DEFAULT false
) RETURNS TABLE (code TEXT, instance_id TEXT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_codes TEXT[];
    v_instances TEXT[];
BEGIN
    PERFORM 1 FROM {schema}.instance_locks AS l WHERE l.lock_token = ANY (p_tokens) ORDER BY l.instance_id
        FOR UPDATE;

    SELECT array_agg(CASE
            WHEN l.instance_id IS NULL THEN 'lost'
            WHEN l.locked_until <= v_now AND NOT p_ended_too THEN 'ended'
            WHEN t.nth > 1 THEN 'lost'
            ELSE 'ok'
        END ORDER BY t.place),
        array_agg(l.instance_id ORDER BY t.place)
    INTO v_codes, v_instances
    FROM (
        SELECT t.token, t.place, row_number() OVER (PARTITION BY t.token ORDER BY t.place) AS nth
        FROM unnest(p_tokens) WITH ORDINALITY AS t (token, place)
    ) AS t
    LEFT JOIN {schema}.instance_locks AS l ON l.lock_token = t.token AND l.lock_token = ANY (p_tokens);

    UPDATE {schema}.orchestrator_queue AS q
    SET attempt_count = q.attempt_count + (NOT t.uncounted)::int,
        state = CASE WHEN t.visible > v_now THEN 0 ELSE 1 END,
        visible_ms = coalesce(t.visible, q.visible_ms),
        due_ms = coalesce(q.due_ms, q.visible_ms)
    FROM (
        SELECT message.row, t.uncounted, {schema}.after_ms(v_now, t.delay) AS visible
        FROM unnest(p_tokens, p_delay_ms, p_uncounted) WITH ORDINALITY AS t (token, delay, uncounted, place)
        CROSS JOIN LATERAL (
            SELECT unnest(l.leased) AS id FROM {schema}.instance_locks AS l
                WHERE l.lock_token = t.token OFFSET 0
        ) AS leased
        CROSS JOIN LATERAL (
            SELECT q.ctid AS row FROM {schema}.orchestrator_queue AS q WHERE q.id = leased.id
                AND q.state = 1 OFFSET 0
        ) AS message
        WHERE v_codes[t.place] = 'ok'
    ) AS t
    WHERE q.ctid = t.row;

    IF cardinality(array_remove(p_delay_ms, NULL)) > 0 THEN
        PERFORM {schema}.lower_floor('due_messages',
            {schema}.after_ms(v_now, (SELECT min(d.ms) FROM unnest(p_delay_ms) AS d (ms))));
    END IF;
    PERFORM {schema}.free_turns(ARRAY(
        SELECT t.instance_id FROM unnest(v_instances, v_codes) AS t (instance_id, code) WHERE t.code = 'ok'
    ), v_now);

    RETURN QUERY SELECT t.code, t.instance_id
    FROM unnest(v_codes, v_instances) WITH ORDINALITY AS t (code, instance_id, place)
    ORDER BY t.place;
    IF 'ok' = ANY (v_codes) THEN
        PERFORM {schema}.notify(p_notify, p_me);
    END IF;
END
$function$
