-- Deletes all rows of the given instances and returns how many there were: instances, executions, events, and
-- queued messages and work. Sessions that the instances own are closed, which withdraws the work of those
-- sessions. Shared sessions that lose work get new heads (the rows by which fetches find a session's oldest
-- ready work). A holder whose lease is deleted learns it from its next call: the token is unknown (S4), or
-- its work was withdrawn (S12). p_now_ms NULL: the time of the database.
-- The starts stay of parents that wait for them and are not among the given instances (S17): their leases end
-- as if they had expired, their routes end, and they make their instances anew.
-- Locks: the caller has locked `instance_locks` of all given instances. Then `lines` in the order of their
-- keys, then `worker_queue` in the order of id, then `instances` in the order of instance_id.
CREATE OR REPLACE FUNCTION {schema}.erase_instances(p_instances TEXT[], p_now_ms BIGINT DEFAULT NULL)
RETURNS TABLE(instances BIGINT, executions BIGINT, events BIGINT, queued BIGINT)
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_work     BIGINT[];
    v_scopes   TEXT[];  -- the sessions of that work, and the sessions that the instances own
    v_sessions TEXT[];
    v_tags     TEXT[];  -- NULL for a session that an instance owns
    v_count    BIGINT;
    v_kept     BIGINT[];  -- the starts that stay
    v_anew     TEXT[];    -- their instances
    v_now      BIGINT := {schema}.now_ms(p_now_ms);
BEGIN
    SELECT count(DISTINCT id) INTO instances FROM unnest(p_instances) AS given (id);

    v_work := ARRAY(SELECT w.id FROM {schema}.worker_queue AS w WHERE w.instance_id = ANY (p_instances));
    SELECT array_agg(touched.scope), array_agg(touched.session_id), array_agg(touched.tag)
    INTO v_scopes, v_sessions, v_tags
    FROM (
        SELECT DISTINCT w.session_scope AS scope, w.session_id, w.tag FROM {schema}.worker_queue AS w
        WHERE w.id = ANY (v_work) AND w.session_id IS NOT NULL
            AND (w.session_scope = '' OR w.session_scope <> ALL (p_instances))
        UNION ALL
        SELECT l.instance_id, l.session_id, NULL FROM {schema}.lines AS l
        WHERE l.instance_id = ANY (p_instances) AND l.instance_id <> ''
    ) AS touched;
    PERFORM {schema}.lock_lines(v_scopes, v_sessions);

    PERFORM {schema}.lock_work(v_work);
    queued := {schema}.drop_work(v_work, v_now);
    IF v_sessions IS NOT NULL THEN
        PERFORM {schema}.close_lines(array_agg(own.scope), array_agg(own.session_id), v_now)
        FROM unnest(v_scopes, v_sessions, v_tags) AS own (scope, session_id, tag)
        WHERE own.tag IS NULL HAVING count(*) > 0;
        PERFORM {schema}.refresh_heads(array_agg(shared.scope), array_agg(shared.session_id),
            array_agg(shared.tag))
        FROM unnest(v_scopes, v_sessions, v_tags) AS shared (scope, session_id, tag)
        WHERE shared.tag IS NOT NULL HAVING count(*) > 0;
    END IF;

    SELECT coalesce(array_agg(q.id), '{}'), coalesce(array_agg(DISTINCT q.instance_id), '{}')
    INTO v_kept, v_anew
    FROM {schema}.orchestrator_queue AS q
    WHERE q.instance_id = ANY (p_instances) AND q.starts AND (
        SELECT parent.instance_id FROM {schema}.instances AS parent
        WHERE parent.ord = q.parent_life AND parent.status NOT IN ('Completed', 'Failed')
    ) <> ALL (p_instances);
    DELETE FROM {schema}.orchestrator_queue AS q WHERE q.id <> ALL (v_kept) AND q.id IN (
        SELECT delayed.id FROM {schema}.orchestrator_queue AS delayed
        WHERE delayed.instance_id = ANY (p_instances) AND delayed.state = 0
        UNION ALL
        SELECT ready.id FROM {schema}.orchestrator_queue AS ready
        WHERE ready.instance_id = ANY (p_instances) AND ready.state = 1
    );
    GET DIAGNOSTICS v_count = ROW_COUNT;
    queued := queued + v_count;
    DELETE FROM {schema}.history AS h WHERE h.instance_id = ANY (p_instances);
    GET DIAGNOSTICS events = ROW_COUNT;
    DELETE FROM {schema}.executions AS e WHERE e.instance_id = ANY (p_instances);
    GET DIAGNOSTICS executions = ROW_COUNT;
    DELETE FROM {schema}.kv AS k WHERE k.instance_id = ANY (p_instances);
    DELETE FROM {schema}.watchers AS w WHERE w.instance_id = ANY (p_instances);
    DELETE FROM {schema}.session_trail AS t WHERE t.instance_id = ANY (p_instances) AND t.instance_id <> '';
    DELETE FROM {schema}.set_aside AS s WHERE s.instance_id = ANY (p_instances);
    DELETE FROM {schema}.ended_leases AS e
    WHERE e.instance_id = ANY (p_instances) AND (e.messages && v_kept) IS NOT TRUE;
    -- The first commit of a child has locked the row of its parent, or finds it gone (see record_commits): a
    -- child that is not among the given instances is seen when the rows are locked.
    PERFORM 1 FROM {schema}.instances AS i WHERE i.instance_id = ANY (p_instances) ORDER BY i.instance_id
        FOR UPDATE;
    DELETE FROM {schema}.instances AS i WHERE i.instance_id = ANY (p_instances);
    UPDATE {schema}.instances AS i SET is_orphan = true
    WHERE i.parent_instance_id = ANY (p_instances) AND NOT i.is_orphan;
    DELETE FROM {schema}.instance_locks AS l
    WHERE l.instance_id = ANY (p_instances) AND l.instance_id <> ALL (v_anew);
    IF cardinality(v_anew) > 0 THEN
        PERFORM {schema}.open_instances(v_anew, v_now);
        PERFORM {schema}.give_up_turns(v_anew, v_now);
        UPDATE {schema}.instance_locks AS l
        SET pin = -1, since = CASE WHEN l.head IS NULL THEN 0 ELSE v_now END
        WHERE l.instance_id = ANY (v_anew);
    END IF;
    RETURN NEXT;
END
$function$
