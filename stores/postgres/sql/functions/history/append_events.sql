-- Appends events to executions without a lease and changes nothing else (S8). Each request is judged alone; a
-- refused one appends nothing. Returns one row per request, in order: `ok`, `conflict` (an event id exists
-- already or stands in the request twice) or `invalid` (an event id is not above 0); `event_at` is the
-- position of that event in its request.
-- Locks: `instance_locks` in the order of instance_id.
CREATE OR REPLACE FUNCTION {schema}.append_events(
    p_instances TEXT[], p_executions BIGINT[],
    p_event_of INTEGER[], p_event_ids BIGINT[], p_event_kinds TEXT[], p_event_texts TEXT[], p_now_ms BIGINT
) RETURNS TABLE (code TEXT, event_at INTEGER)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_code TEXT;
    v_event_at INTEGER;
BEGIN
    PERFORM {schema}.lock_instances(p_instances);
    -- One after the other, because a request may repeat an event id of an earlier one.
    FOR v_of IN 1..cardinality(p_instances) LOOP
        v_code := 'ok';
        v_event_at := NULL;
        SELECT CASE WHEN e.id <= 0 THEN 'invalid' ELSE 'conflict' END, e.at INTO v_code, v_event_at
        FROM (
            SELECT e.id, row_number() OVER (ORDER BY e.place)::int AS at,
                row_number() OVER (PARTITION BY e.id ORDER BY e.place) AS nth
            FROM unnest(p_event_of, p_event_ids) WITH ORDINALITY AS e (of, id, place)
            WHERE e.of = v_of
        ) AS e
        WHERE e.id <= 0 OR e.nth > 1 OR (
            SELECT 1 FROM {schema}.history AS h
            WHERE h.instance_id = p_instances[v_of] AND h.execution_id = p_executions[v_of]
                AND h.event_id = e.id
        ) = 1
        ORDER BY e.at LIMIT 1;
        IF NOT FOUND THEN
            v_code := 'ok';
            INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data,
                created_at)
            SELECT p_instances[v_of], p_executions[v_of], e.id, e.kind, e.text, to_timestamp(v_now / 1000.0)
            FROM unnest(p_event_of, p_event_ids, p_event_kinds, p_event_texts) AS e (of, id, kind, text)
            WHERE e.of = v_of;
        END IF;
        RETURN QUERY SELECT v_code, v_event_at;
    END LOOP;
END
$function$
