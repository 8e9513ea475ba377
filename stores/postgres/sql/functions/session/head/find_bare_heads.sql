-- Finds the oldest ready work without terms of sessions that an owner may serve, for a caller that does not
-- know terms (S22): of each session and tag the oldest, as find_session_work finds heads, and by indexes
-- that hold no other work (S20).
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.find_bare_heads(
    p_count INTEGER, p_tags TEXT[], p_owner TEXT, p_incarnation BIGINT, p_claim BOOLEAN, p_only_scopes TEXT[],
    p_only_sessions TEXT[], p_out TEXT[], p_now BIGINT, p_floor BIGINT, p_routes TEXT[]
) RETURNS TABLE (head BIGINT, scope TEXT, session TEXT, tag TEXT)
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    IF NOT p_claim THEN
        RETURN QUERY
        SELECT h.bare_head, h.instance_id, h.session_id, h.tag
        FROM unnest(p_only_scopes, p_only_sessions) AS named (scope, session)
        JOIN {schema}.sessions AS s ON s.instance_id = named.scope AND s.session_id = named.session
        JOIN {schema}.heads AS h ON h.instance_id = named.scope AND h.session_id = named.session
        WHERE s.held AND s.locked_until > p_now AND s.worker_id = p_owner AND s.closed_epoch IS NULL
          AND (p_incarnation IS NULL OR s.incarnation = p_incarnation)
          AND CASE WHEN p_tags IS NULL THEN h.tag < '@' OR h.tag = ANY (p_routes)
              ELSE h.tag = ANY (p_tags) END
          AND h.bare_head IS NOT NULL
          AND length(h.instance_id) || ':' || h.instance_id || h.session_id <> ALL (p_out);
        RETURN;
    END IF;
    IF p_tags IS NULL THEN
        RETURN QUERY
        SELECT oldest.bare_head, oldest.instance_id, oldest.session_id, oldest.tag
        FROM unnest(ARRAY['', ':' || p_owner]) AS holder (owner)
        CROSS JOIN LATERAL (
            SELECT h.bare_head, h.instance_id, h.session_id, h.tag FROM {schema}.heads AS h
            WHERE h.owner = holder.owner AND h.tag < '@' AND h.bare_head IS NOT NULL
              AND h.bare_head + 0 >= p_floor
              AND length(h.instance_id) || ':' || h.instance_id || h.session_id <> ALL (p_out)
            ORDER BY h.bare_head + 0 LIMIT p_count
        ) AS oldest;
    END IF;
    -- With all tags, the routed ones are looked for besides.
    RETURN QUERY
    SELECT oldest.bare_head, oldest.instance_id, oldest.session_id, oldest.tag
    FROM unnest(ARRAY['', ':' || p_owner]) AS holder (owner)
    CROSS JOIN unnest(coalesce(p_tags, p_routes)) AS wanted (tag)
    CROSS JOIN LATERAL (
        SELECT h.bare_head, h.instance_id, h.session_id, h.tag FROM {schema}.heads AS h
        WHERE h.owner = holder.owner AND h.tag = wanted.tag AND h.bare_head >= p_floor
          AND length(h.instance_id) || ':' || h.instance_id || h.session_id <> ALL (p_out)
        ORDER BY h.bare_head LIMIT p_count
    ) AS oldest;
END
$function$
