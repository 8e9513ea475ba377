-- Removes sessions without a live lease and without work, if they are shared or their instance does not
-- exist, and unused rows of `lines` (S13); with the first page also expired rows of `closed_sessions`. One
-- call handles one page of keys after the given key. Returns how many sessions were removed, and the last key
-- of the page, NULL after the last page. An instance exists if it has a row, a history or a queued start: an
-- instance that runs through the compatible functions may have no row. The trail of a removed session says
-- that its last claim expired, unless that was released.
-- Locks: `closed_sessions` and `lines` in the order of their keys, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.cleanup_sessions(
    p_after_scope TEXT DEFAULT '', p_after_session TEXT DEFAULT '', p_now_ms BIGINT DEFAULT NULL
) RETURNS TABLE (removed BIGINT, last_scope TEXT, last_session TEXT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_page CONSTANT INTEGER := 1000;
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_last_scope TEXT;
    v_last_session TEXT;
    v_removed BIGINT := 0;
BEGIN
    IF p_after_scope = '' AND p_after_session = '' THEN
        DELETE FROM {schema}.closed_sessions AS c
        WHERE c.ctid = ANY (ARRAY(
            SELECT c.ctid FROM {schema}.closed_sessions AS c WHERE c.locked_until <= v_now
            ORDER BY c.instance_id, c.session_id LIMIT v_page FOR UPDATE SKIP LOCKED
        ));
    END IF;
    SELECT array_agg(l.instance_id), array_agg(l.session_id) INTO v_scopes, v_sessions
    FROM (
        SELECT l.instance_id, l.session_id FROM {schema}.lines AS l
        WHERE (l.instance_id, l.session_id) > (p_after_scope, p_after_session)
        ORDER BY l.instance_id, l.session_id LIMIT v_page
    ) AS l;
    IF cardinality(v_sessions) = v_page THEN
        v_last_scope := v_scopes[v_page];
        v_last_session := v_sessions[v_page];
    END IF;

    SELECT array_agg(l.instance_id), array_agg(l.session_id) INTO v_scopes, v_sessions
    FROM (
        SELECT l.instance_id, l.session_id
        FROM unnest(v_scopes, v_sessions) AS l (instance_id, session_id)
        LEFT JOIN {schema}.sessions AS s ON s.instance_id = l.instance_id AND s.session_id = l.session_id
        WHERE NOT coalesce(s.held AND s.locked_until > v_now, false)
          AND (s.session_id IS NULL OR l.instance_id = '' OR coalesce(
              (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = l.instance_id),
              (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = l.instance_id LIMIT 1),
              (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = l.instance_id AND q.starts
                  LIMIT 1)
          ) IS NULL)
          AND (
              SELECT 1 FROM {schema}.worker_queue AS w
              WHERE w.session_id = l.session_id AND w.session_scope = l.instance_id
              LIMIT 1
          ) IS NULL
    ) AS l;
    SELECT array_agg(locked.scope), array_agg(locked.session) INTO v_scopes, v_sessions
    FROM {schema}.hold_lines(v_scopes, v_sessions) AS locked;
    IF v_sessions IS NOT NULL THEN
        -- While the rows are locked, no transaction queues work for these sessions or claims them.
        WITH gone AS (
            DELETE FROM {schema}.sessions AS s
            USING unnest(v_scopes, v_sessions) AS locked (scope, session)
            WHERE s.instance_id = locked.scope AND s.session_id = locked.session
              AND NOT (s.held AND s.locked_until > v_now)
              AND (s.instance_id = '' OR coalesce(
                  (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = s.instance_id),
                  (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = s.instance_id LIMIT 1),
                  (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = s.instance_id
                      AND q.starts LIMIT 1)
              ) IS NULL)
              AND (
                  SELECT 1 FROM {schema}.worker_queue AS w
                  WHERE w.session_id = s.session_id AND w.session_scope = s.instance_id
                  LIMIT 1
              ) IS NULL
            RETURNING s.*
        ), noted AS (
            INSERT INTO {schema}.session_trail
                (instance_id, session_id, epoch, is_end, worker_id, incarnation, at_ms, change)
            SELECT s.instance_id, s.session_id, s.epoch, true, s.worker_id, s.incarnation,
                least(s.locked_until, v_now), 'expired'
            FROM gone AS s WHERE s.epoch > 0 AND s.released_epoch IS DISTINCT FROM s.epoch
            ON CONFLICT DO NOTHING
        )
        SELECT count(*) INTO v_removed FROM gone;
        DELETE FROM {schema}.lines AS l
        USING unnest(v_scopes, v_sessions) AS locked (scope, session)
        WHERE l.instance_id = locked.scope AND l.session_id = locked.session
          AND (
              SELECT 1 FROM {schema}.sessions AS s WHERE s.instance_id = l.instance_id
                  AND s.session_id = l.session_id
          ) IS NULL
          AND (
              SELECT 1 FROM {schema}.worker_queue AS w
              WHERE w.session_id = l.session_id AND w.session_scope = l.instance_id
              LIMIT 1
          ) IS NULL;
    END IF;
    RETURN QUERY SELECT v_removed, v_last_scope, v_last_session;
END
$function$
