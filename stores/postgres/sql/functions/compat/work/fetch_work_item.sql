-- Compatible function: leases the oldest work that the caller may run (S5, S9, S13, S14, S18). No row if
-- there is none. With p_owner_id it also leases work of sessions that this owner holds, and of sessions
-- without an owner, which it then claims for p_session_lock_timeout_ms (NULL: as long as the work is leased).
-- p_tags: the accepted tags, '' for work without a tag; NULL accepts all.
-- Columns: out_work_item, out_lock_token, out_attempt_count. Raises SF013 if p_lock_timeout_ms is NULL.
-- Locks: those of fetch_work_items, all skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.fetch_work_item(
    p_now_ms BIGINT, p_lock_timeout_ms BIGINT, p_owner_id TEXT DEFAULT NULL,
    p_session_lock_timeout_ms BIGINT DEFAULT NULL,
    p_tags TEXT[] DEFAULT ARRAY['']
) RETURNS TABLE(out_work_item TEXT, out_lock_token TEXT, out_attempt_count INTEGER)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    v_tags TEXT[] := (
        SELECT array_agg(CASE WHEN tag = '' THEN '' ELSE ':' || tag END) FROM unnest(p_tags) AS tag
    );
BEGIN
    IF p_lock_timeout_ms IS NULL THEN
        -- A lease that never expires would block the row for ever.
        RAISE EXCEPTION 'p_lock_timeout_ms is required' USING ERRCODE = 'SF013';
    END IF;
    IF cardinality(p_tags) = 0 THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT w.item, w.token, w.attempt
    FROM {schema}.fetch_work_items(
        1, v_tags, ARRAY[p_owner_id],
        p_lock_timeout_ms, p_owner => p_owner_id,
        p_session_lock_ms => coalesce(p_session_lock_timeout_ms, p_lock_timeout_ms), p_claim => true,
        p_now_ms => p_now_ms
    ) AS w
    WHERE w.token IS NOT NULL;
END
$function$
