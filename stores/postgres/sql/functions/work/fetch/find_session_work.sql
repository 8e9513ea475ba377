-- Finds the oldest ready work of sessions that an owner may serve (S13, S20): with p_claim of the sessions
-- that it holds and of those without an owner, with one index scan per tag; without p_claim of the named
-- sessions that it holds. A session gives all its ready work, a serial session only its head. With p_heads
-- each session and tag gives only its oldest work, so that many sessions are seen. A head that is not ready
-- is returned too: the caller has to refresh it. p_out: sessions to skip. p_floor: the head at which the
-- scans start. With p_tags NULL, p_routes are the routed tags to look for besides (S21). p_bare: only work
-- without terms (S22).
-- Locks: none. The caller judges the result again under the lock of the `lines` row.
CREATE OR REPLACE FUNCTION {schema}.find_session_work(
    p_count INTEGER, p_tags TEXT[], p_owner TEXT, p_incarnation BIGINT, p_claim BOOLEAN, p_only_scopes TEXT[],
    p_only_sessions TEXT[], p_out TEXT[], p_now BIGINT, p_floor BIGINT DEFAULT 0,
    p_heads BOOLEAN DEFAULT false, p_routes TEXT[] DEFAULT NULL, p_bare BOOLEAN DEFAULT false
) RETURNS TABLE (id BIGINT, scope TEXT, session TEXT)
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_heads BIGINT[];
    v_scopes TEXT[];
    v_sessions TEXT[];
    v_tags TEXT[];
BEGIN
    IF p_bare THEN
        SELECT array_agg(h.head), array_agg(h.scope), array_agg(h.session), array_agg(h.tag)
        INTO v_heads, v_scopes, v_sessions, v_tags
        FROM {schema}.find_bare_heads(
            p_count, p_tags, p_owner, p_incarnation, p_claim, p_only_scopes, p_only_sessions, p_out, p_now,
            p_floor, p_routes
        ) AS h;
    ELSIF NOT p_claim THEN
        SELECT array_agg(h.head), array_agg(h.instance_id), array_agg(h.session_id), array_agg(h.tag)
        INTO v_heads, v_scopes, v_sessions, v_tags
        FROM unnest(p_only_scopes, p_only_sessions) AS named (scope, session)
        JOIN {schema}.sessions AS s ON s.instance_id = named.scope AND s.session_id = named.session
        JOIN {schema}.heads AS h ON h.instance_id = named.scope AND h.session_id = named.session
        WHERE s.held AND s.locked_until > p_now AND s.worker_id = p_owner AND s.closed_epoch IS NULL
          AND (p_incarnation IS NULL OR s.incarnation = p_incarnation)
          AND CASE WHEN p_tags IS NULL THEN h.tag < '@' OR h.tag = ANY (p_routes)
              ELSE h.tag = ANY (p_tags) END
          AND length(h.instance_id) || ':' || h.instance_id || h.session_id <> ALL (p_out);
    ELSIF p_tags IS NULL THEN
        SELECT array_agg(oldest.head), array_agg(oldest.instance_id), array_agg(oldest.session_id),
            array_agg(oldest.tag)
        INTO v_heads, v_scopes, v_sessions, v_tags
        FROM unnest(ARRAY['', ':' || p_owner]) AS holder (owner)
        CROSS JOIN LATERAL (
            (
                SELECT h.head, h.instance_id, h.session_id, h.tag FROM {schema}.heads AS h
                WHERE h.owner = holder.owner AND h.tag < '@' AND h.head + 0 >= p_floor
                  AND length(h.instance_id) || ':' || h.instance_id || h.session_id <> ALL (p_out)
                ORDER BY h.head + 0 LIMIT p_count
            )
            UNION ALL
            SELECT routed.* FROM unnest(p_routes) AS route (tag)
            CROSS JOIN LATERAL (
                SELECT h.head, h.instance_id, h.session_id, h.tag FROM {schema}.heads AS h
                WHERE h.owner = holder.owner AND h.tag = route.tag AND h.head >= p_floor
                  AND length(h.instance_id) || ':' || h.instance_id || h.session_id <> ALL (p_out)
                ORDER BY h.head LIMIT p_count
            ) AS routed
        ) AS oldest;
    ELSE
        SELECT array_agg(oldest.head), array_agg(oldest.instance_id), array_agg(oldest.session_id),
            array_agg(oldest.tag)
        INTO v_heads, v_scopes, v_sessions, v_tags
        FROM unnest(ARRAY['', ':' || p_owner]) AS holder (owner)
        CROSS JOIN unnest(p_tags) AS wanted (tag)
        CROSS JOIN LATERAL (
            SELECT h.head, h.instance_id, h.session_id, h.tag FROM {schema}.heads AS h
            WHERE h.owner = holder.owner AND h.tag = wanted.tag AND h.head >= p_floor
              AND length(h.instance_id) || ':' || h.instance_id || h.session_id <> ALL (p_out)
            ORDER BY h.head LIMIT p_count
        ) AS oldest;
    END IF;
    IF v_heads IS NULL THEN
        RETURN;
    END IF;
    IF p_count = 1 OR p_heads THEN
        RETURN QUERY
        SELECT h.head, h.scope, h.session FROM unnest(v_heads, v_scopes, v_sessions) AS h (head, scope,
            session)
        ORDER BY h.head LIMIT p_count;
        RETURN;
    END IF;
    IF p_bare THEN
        RETURN QUERY
        SELECT coalesce(ready.id, h.head), h.scope, h.session
        FROM (
            SELECT * FROM unnest(v_heads, v_scopes, v_sessions, v_tags) AS h (head, scope, session, tag)
            ORDER BY h.head LIMIT p_count
        ) AS h
        LEFT JOIN {schema}.sessions AS s ON s.instance_id = h.scope AND s.session_id = h.session
        LEFT JOIN LATERAL (
            SELECT w.id FROM {schema}.worker_queue AS w
            WHERE w.session_id = h.session AND w.session_scope = h.scope AND w.state = 1 AND w.tag = h.tag
              AND w.call IS NULL
              AND 0 + w.id BETWEEN h.head AND CASE WHEN s.serial THEN h.head ELSE 9223372036854775807 END
            ORDER BY 0 + w.id LIMIT p_count
        ) AS ready ON true
        ORDER BY 1 LIMIT p_count;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT coalesce(ready.id, h.head), h.scope, h.session
    FROM (
        SELECT * FROM unnest(v_heads, v_scopes, v_sessions, v_tags) AS h (head, scope, session, tag)
        ORDER BY h.head LIMIT p_count
    ) AS h
    LEFT JOIN {schema}.sessions AS s ON s.instance_id = h.scope AND s.session_id = h.session
    LEFT JOIN LATERAL (
        SELECT w.id FROM {schema}.worker_queue AS w
        WHERE w.session_id = h.session AND w.session_scope = h.scope AND w.state = 1 AND w.tag = h.tag
          AND w.id + 0 BETWEEN h.head AND CASE WHEN s.serial THEN h.head ELSE 9223372036854775807 END
        ORDER BY w.id + 0 LIMIT p_count
    ) AS ready ON true
    ORDER BY 1 LIMIT p_count;
END
$function$
