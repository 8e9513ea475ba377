-- Locks, without waiting, the instances that have to be told when the given sessions are claimed, and returns
-- those that it locked. A session can be claimed only if all its watchers are locked; otherwise its claim is
-- left to a later fetch.
-- Locks: `instance_locks` in the order of instance_id, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.hold_watchers(p_scopes TEXT[], p_sessions TEXT[]) RETURNS TEXT[]
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_told TEXT[] := ARRAY(
        SELECT DISTINCT w.instance_id
        FROM unnest(p_scopes, p_sessions) AS claim (scope, session)
        CROSS JOIN LATERAL (
            SELECT w.instance_id FROM {schema}.watchers AS w
            WHERE w.session_scope = claim.scope AND w.session_id = claim.session AND w.has_seen
            OFFSET 0
        ) AS w
    );
BEGIN
    IF cardinality(v_told) = 0 THEN
        RETURN v_told;
    END IF;
    INSERT INTO {schema}.instance_locks (instance_id)
    SELECT told FROM unnest(v_told) AS told
    WHERE (SELECT 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = told) IS NULL
    ORDER BY told COLLATE "C"
    ON CONFLICT DO NOTHING;
    RETURN ARRAY(
        SELECT l.instance_id
        FROM (SELECT told.id COLLATE "C" AS id FROM unnest(v_told) AS told (id) ORDER BY 1) AS told
        CROSS JOIN LATERAL (
            SELECT l.instance_id FROM {schema}.instance_locks AS l WHERE l.instance_id = told.id
            FOR UPDATE SKIP LOCKED
        ) AS l
    );
END
$function$
