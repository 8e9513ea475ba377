-- Starts those of the given instances that do not exist: that have no row, no history and no queued start;
-- the start of a child for a former life of its parent does not count (S17). The `also` arrays hold further
-- messages, which are sent whether or not an instance is new, after the start with the number p_also_of.
-- p_failures and p_also_failures: see queue_messages.
-- Returns one row per start, in order: whether the instance is new.
-- Locks: `instance_locks` of all instances in the order of instance_id.
CREATE OR REPLACE FUNCTION {schema}.start_instances(
    p_instances TEXT[], p_items TEXT[], p_delay_ms BIGINT[], p_traceparents TEXT[],
    p_also_of INTEGER[], p_also_instances TEXT[], p_also_items TEXT[], p_also_delay_ms BIGINT[],
    p_also_starts BOOLEAN[],
    p_also_traceparents TEXT[], p_now_ms BIGINT, p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL,
    p_failures TEXT[] DEFAULT NULL, p_also_failures TEXT[] DEFAULT NULL
) RETURNS TABLE (is_new BOOLEAN)
LANGUAGE plpgsql
{patient}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_new BOOLEAN[];
    v_instances TEXT[];
    v_items TEXT[];
    v_visible BIGINT[];
    v_starts BOOLEAN[];
    v_traceparents TEXT[];
    v_failures TEXT[];
BEGIN
    IF p_me IS NOT NULL THEN
        -- A process of the store repeats the call. In a transaction of an application, which cannot be
        -- repeated, its own limit counts.
        PERFORM set_config('lock_timeout', '500ms', true);
    END IF;
    PERFORM {schema}.lock_instances(p_instances || p_also_instances);

    SELECT array_agg(s.nth = 1 AND coalesce(
            (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = s.id),
            (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = s.id AND q.starts
                AND (q.parent_life IS NULL
                    OR NOT {schema}.is_of_former_life(q.parent_instance_id, q.parent_life, true)) LIMIT 1),
            (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = s.id LIMIT 1)
        ) IS NULL ORDER BY s.place)
    INTO v_new
    FROM (
        SELECT s.id, s.place, row_number() OVER (PARTITION BY s.id ORDER BY s.place) AS nth
        FROM unnest(p_instances) WITH ORDINALITY AS s (id, place)
    ) AS s;

    SELECT array_agg(m.id ORDER BY m.of, m.place), array_agg(m.item ORDER BY m.of, m.place),
        array_agg({schema}.after_ms(v_now, m.delay) ORDER BY m.of, m.place),
        array_agg(m.starts ORDER BY m.of, m.place),
        array_agg(m.traceparent ORDER BY m.of, m.place), array_agg(m.failure ORDER BY m.of, m.place)
    INTO v_instances, v_items, v_visible, v_starts, v_traceparents, v_failures
    FROM (
        SELECT s.of, 0 AS place, s.id, s.item, s.delay, true AS starts, s.traceparent, s.failure
        FROM unnest(p_instances, p_items, p_delay_ms, p_traceparents, p_failures)
            WITH ORDINALITY AS s (id, item, delay, traceparent, failure, of)
        WHERE v_new[s.of]
        UNION ALL
        SELECT a.of, a.place, a.id, a.item, a.delay, a.starts, a.traceparent, a.failure
        FROM unnest(p_also_of, p_also_instances, p_also_items, p_also_delay_ms, p_also_starts,
            p_also_traceparents, p_also_failures)
            WITH ORDINALITY AS a (of, id, item, delay, starts, traceparent, failure, place)
    ) AS m;
    IF v_instances IS NOT NULL THEN
        PERFORM {schema}.queue_messages(v_instances, v_items, v_visible, v_starts, v_traceparents, v_now,
            p_failures => v_failures);
        PERFORM {schema}.notify(p_notify, p_me);
    END IF;

    RETURN QUERY SELECT n.is_new FROM unnest(v_new) WITH ORDINALITY AS n (is_new, place) ORDER BY n.place;
END
$function$
