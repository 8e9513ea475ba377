-- Deletes sessions and withdraws their work, queued or running (S12, S13). Claims whose leases last are kept
-- in `closed_sessions`. p_now NULL: the time of the database.
-- Locks: `lines` in the order of their keys, then `worker_queue` in the order of id.
CREATE OR REPLACE FUNCTION {schema}.close_lines(p_scopes TEXT[], p_sessions TEXT[], p_now BIGINT DEFAULT NULL)
    RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_ids BIGINT[];
BEGIN
    PERFORM {schema}.lock_lines(p_scopes, p_sessions);
    v_ids := ARRAY(
        SELECT w.id
        FROM unnest(p_scopes, p_sessions) AS line (scope, session)
        CROSS JOIN LATERAL (
            SELECT w.id FROM {schema}.worker_queue AS w
            WHERE w.session_id = line.session AND w.session_scope = line.scope
            OFFSET 0
        ) AS w
    );
    PERFORM {schema}.lock_work(v_ids);
    PERFORM {schema}.drop_work(v_ids, {schema}.now_ms(p_now));
    DELETE FROM {schema}.heads AS h
    WHERE h.ctid = ANY (ARRAY(
        SELECT old.ctid FROM unnest(p_scopes, p_sessions) AS line (scope, session)
        CROSS JOIN LATERAL (
            SELECT h.ctid FROM {schema}.heads AS h
            WHERE h.instance_id = line.scope AND h.session_id = line.session
            OFFSET 0
        ) AS old
    ));
    PERFORM {schema}.note_ends(p_scopes, p_sessions, 'closed', {schema}.now_ms(p_now));
    WITH gone AS (
        DELETE FROM {schema}.sessions AS s USING unnest(p_scopes, p_sessions) AS line (scope, session)
        WHERE s.instance_id = line.scope AND s.session_id = line.session
        RETURNING s.*
    )
    INSERT INTO {schema}.closed_sessions AS c
        (instance_id, session_id, worker_id, incarnation, epoch, locked_until)
    SELECT s.instance_id, s.session_id, s.worker_id, s.incarnation, coalesce(s.closed_epoch, s.epoch),
        s.locked_until
    FROM gone AS s WHERE s.held AND s.locked_until > {schema}.now_ms(p_now)
    ON CONFLICT (instance_id, session_id) DO UPDATE
    SET worker_id = excluded.worker_id, incarnation = excluded.incarnation, epoch = excluded.epoch,
        locked_until = excluded.locked_until, replaced_by = NULL;
    DELETE FROM {schema}.lines AS l USING unnest(p_scopes, p_sessions) AS line (scope, session)
    WHERE l.instance_id = line.scope AND l.session_id = line.session;
END
$function$
