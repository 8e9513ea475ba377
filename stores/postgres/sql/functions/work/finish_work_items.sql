-- Deletes leased work and sends its completions in one transaction (S11). An element of p_items that is NULL
-- sends nothing; p_failures has the failures beside them (S22). Each element is judged alone: one whose token
-- is unknown ('lost', or 'withdrawn' if its work was withdrawn; S12) or whose lease has expired ('ended')
-- changes nothing (S4). If a token stands in the array twice, the first element counts. `next_tag` lists,
-- from the first row on, the tags of the work that is now first in line in the serial sessions.
-- Locks: `instance_locks` of the receivers in the order of instance_id, `lines` of serial sessions in the
-- order of their keys, `worker_queue` in the order of id, then `sessions`.
CREATE OR REPLACE FUNCTION {schema}.finish_work_items(
    p_tokens TEXT[], p_instances TEXT[], p_items TEXT[], p_traceparents TEXT[], p_now_ms BIGINT DEFAULT NULL,
    p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL, p_failures TEXT[] DEFAULT NULL
) RETURNS TABLE (place INTEGER, code TEXT, next_tag TEXT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_places BIGINT[];
    v_ids BIGINT[];
    v_seems_ended BOOLEAN;
    v_targets TEXT[];
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_epochs BIGINT[];
    v_serial_scopes TEXT[];
    v_serial_sessions TEXT[];
    v_serial_tags TEXT[];
    v_expired BIGINT[];
BEGIN
    SELECT array_agg(w.id), bool_or(w.locked_until <= v_now),
        array_agg(p_instances[f.place]) FILTER (WHERE p_items[f.place] IS NOT NULL),
        array_agg(w.session_scope) FILTER (WHERE w.session_id IS NOT NULL),
        array_agg(w.session_id) FILTER (WHERE w.session_id IS NOT NULL)
    INTO v_ids, v_seems_ended, v_targets, v_scopes, v_sessions
    FROM unnest(p_tokens) WITH ORDINALITY AS f (token, place)
    CROSS JOIN LATERAL (
        SELECT w.id, w.locked_until, w.session_scope, w.session_id FROM {schema}.worker_queue AS w
            WHERE w.lock_token = f.token OFFSET 0
    ) AS w;

    IF v_ids IS NOT NULL THEN
        IF v_targets IS NOT NULL THEN
            PERFORM {schema}.lock_instances(v_targets);
        END IF;
        IF v_sessions IS NOT NULL THEN
            SELECT array_agg(s.instance_id), array_agg(s.session_id) INTO v_serial_scopes, v_serial_sessions
            FROM (SELECT DISTINCT * FROM unnest(v_scopes, v_sessions)) AS line (scope, session)
            CROSS JOIN LATERAL (
                SELECT s.instance_id, s.session_id FROM {schema}.sessions AS s
                WHERE s.instance_id = line.scope AND s.session_id = line.session AND s.serial
                OFFSET 0
            ) AS s;
            IF v_serial_sessions IS NOT NULL THEN
                PERFORM {schema}.lock_lines(v_serial_scopes, v_serial_sessions);
            END IF;
        END IF;
        IF v_seems_ended THEN
            -- A concurrent renewal may be extending the lease: wait for it, and judge the result.
            PERFORM {schema}.lock_work(v_ids);
        END IF;

        WITH gone AS (
            -- Rows are deleted in the order of the index, which is the order of the locks.
            DELETE FROM {schema}.worker_queue AS w
            WHERE w.id = ANY (v_ids) AND w.lock_token = ANY (p_tokens) AND w.locked_until > v_now
            RETURNING w.lock_token, w.session_scope, w.session_id, w.epoch,
                CASE WHEN w.has_expired THEN w.id END AS expired
        ), first AS (
            SELECT gone.*, array_position(p_tokens, gone.lock_token) AS place FROM gone
        )
        SELECT array_agg(first.place ORDER BY first.place),
            array_agg(first.session_scope) FILTER (WHERE first.session_id IS NOT NULL),
            array_agg(first.session_id) FILTER (WHERE first.session_id IS NOT NULL),
            array_agg(first.epoch) FILTER (WHERE first.session_id IS NOT NULL),
            array_agg(first.expired) FILTER (WHERE first.expired IS NOT NULL)
        INTO v_places, v_scopes, v_sessions, v_epochs, v_expired
        FROM first;
        IF v_expired IS NOT NULL THEN
            DELETE FROM {schema}.ended_leases AS e WHERE e.work_id = ANY (v_expired);
        END IF;

        IF v_sessions IS NOT NULL THEN
            PERFORM {schema}.touch_sessions(v_scopes, v_sessions, v_epochs, v_now);
            IF EXISTS (
                SELECT 1 FROM unnest(v_scopes, v_sessions) AS line (scope, session)
                CROSS JOIN LATERAL (
                    SELECT 1 FROM {schema}.sessions AS s
                    WHERE s.instance_id = line.scope AND s.session_id = line.session AND s.serial
                    OFFSET 0
                ) AS s
                WHERE (v_serial_sessions IS NULL OR NOT EXISTS (
                    SELECT 1 FROM unnest(v_serial_scopes, v_serial_sessions) AS serial (scope, session)
                    WHERE serial.scope = line.scope AND serial.session = line.session
                ))
            ) THEN
                -- A session was opened as serial after it was read above.
                SELECT array_agg(s.instance_id), array_agg(s.session_id) INTO v_serial_scopes,
                    v_serial_sessions
                FROM (SELECT DISTINCT * FROM unnest(v_scopes, v_sessions)) AS line (scope, session)
                CROSS JOIN LATERAL (
                    SELECT s.instance_id, s.session_id FROM {schema}.sessions AS s
                    WHERE s.instance_id = line.scope AND s.session_id = line.session AND s.serial
                    OFFSET 0
                ) AS s;
                PERFORM {schema}.lock_lines(v_serial_scopes, v_serial_sessions);
            END IF;
        END IF;
        IF v_serial_sessions IS NOT NULL THEN
            PERFORM {schema}.refresh_serial_heads(v_serial_scopes, v_serial_sessions);
            SELECT array_agg({schema}.plain_tag(h.tag)) INTO v_serial_tags
            FROM unnest(v_serial_scopes, v_serial_sessions) AS line (scope, session)
            CROSS JOIN LATERAL (
                SELECT h.tag FROM {schema}.heads AS h
                WHERE h.instance_id = line.scope AND h.session_id = line.session
                OFFSET 0
            ) AS h;
        END IF;
        IF cardinality(v_places) = cardinality(p_tokens)
            AND cardinality(v_targets) = cardinality(p_tokens) THEN
            PERFORM {schema}.queue_messages(p_instances, p_items, NULL, NULL, p_traceparents, v_now,
                p_failures => p_failures);
        ELSIF v_places IS NOT NULL AND v_targets IS NOT NULL THEN
            PERFORM {schema}.queue_messages(
                array_agg(p_instances[f.place] ORDER BY f.place),
                array_agg(p_items[f.place] ORDER BY f.place),
                NULL, array_agg(false), array_agg(p_traceparents[f.place] ORDER BY f.place), v_now,
                p_failures => array_agg(p_failures[f.place] ORDER BY f.place)
            )
            FROM unnest(v_places) AS f (place)
            WHERE p_items[f.place] IS NOT NULL
            HAVING count(*) > 0;
        END IF;
        IF v_places IS NOT NULL AND p_notify IS NOT NULL THEN
            PERFORM {schema}.notify(p_notify, p_me);
        END IF;
    END IF;

    -- The work of an instance that was deleted meanwhile sends nothing: the row that was made to lock the
    -- instance goes again.
    IF v_targets IS NOT NULL AND coalesce(cardinality(v_places), 0) < cardinality(p_tokens) THEN
        PERFORM {schema}.forget_instances(v_targets);
    END IF;
    IF cardinality(v_places) = cardinality(p_tokens) THEN
        RETURN QUERY SELECT f.place::integer, 'ok', v_serial_tags[f.place] FROM unnest(v_places) AS f (place);
        RETURN;
    END IF;
    RETURN QUERY
    SELECT f.place::integer,
        CASE
            WHEN f.place = ANY (v_places) THEN 'ok'
            WHEN (SELECT 1 FROM {schema}.worker_queue AS w WHERE w.lock_token = f.token) = 1 THEN 'ended'
            ELSE {schema}.code_of_lost_work(f.token)
        END,
        v_serial_tags[f.place]
    FROM unnest(p_tokens) WITH ORDINALITY AS f (token, place)
    ORDER BY f.place;
END
$function$
