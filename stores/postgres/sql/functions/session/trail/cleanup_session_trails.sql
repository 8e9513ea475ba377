-- Removes entries of trails among the p_page oldest ones, and returns how many: those that are older than
-- p_retention_ms, those that are not among the last p_most changes, and those from the future, which were
-- written before the clock was set back. p_now_ms NULL: the time of the database.
-- Locks: `session_trail` in the order of id, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.cleanup_session_trails(
    p_retention_ms BIGINT, p_page INTEGER, p_most BIGINT, p_now_ms BIGINT DEFAULT NULL
) RETURNS BIGINT
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_floor BIGINT := (SELECT t.id FROM {schema}.session_trail AS t ORDER BY t.id DESC LIMIT 1) - p_most;
    v_removed BIGINT;
BEGIN
    DELETE FROM {schema}.session_trail AS t
    WHERE t.id = ANY (ARRAY(
        SELECT old.id
        FROM (SELECT t.id FROM {schema}.session_trail AS t ORDER BY t.id LIMIT p_page) AS old
        CROSS JOIN LATERAL (
            SELECT 1 FROM {schema}.session_trail AS t
            WHERE t.id = old.id
              AND (t.at_ms <= v_now - least(p_retention_ms, v_now) OR t.id <= v_floor
                  OR t.at_ms > {schema}.after_ms(v_now, p_retention_ms))
            FOR UPDATE SKIP LOCKED
        ) AS locked
    ));
    GET DIAGNOSTICS v_removed = ROW_COUNT;
    RETURN v_removed;
END
$function$
