-- Removes all that there is of the given instances, and counts it. Their sessions end and the work of those goes with
-- them; shared sessions whose work goes keep their rows, and their heads are found anew.
-- What is in flight fails afterwards: its token is found nowhere (S4).
-- Locks: the caller has locked the instance_locks of all of them; then lines, then worker_queue by id.
CREATE OR REPLACE FUNCTION {schema}.erase_instances(p_instances TEXT[], p_now BIGINT)
RETURNS TABLE(instances BIGINT, executions BIGINT, events BIGINT, queued BIGINT)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    v_scopes   TEXT[];
    v_sessions TEXT[];
    v_work     BIGINT[];
    v_count    BIGINT;
BEGIN
    SELECT count(DISTINCT id) INTO instances FROM unnest(p_instances) AS given(id);

    SELECT coalesce(array_agg(touched.scope), '{}'), coalesce(array_agg(touched.session_id), '{}')
    INTO v_scopes, v_sessions
    FROM (
        SELECT work.session_scope AS scope, work.session_id
        FROM {schema}.worker_queue AS work
        WHERE work.instance_id = ANY (p_instances) AND work.session_id IS NOT NULL
        UNION
        SELECT line.instance_id, line.session_id
        FROM {schema}.lines AS line
        WHERE line.instance_id = ANY (p_instances) AND line.instance_id <> ''
    ) AS touched;
    IF cardinality(v_scopes) > 0 THEN
        PERFORM {schema}.lock_lines(v_scopes, v_sessions);
    END IF;

    SELECT array_agg(locked.id) INTO v_work
    FROM (
        SELECT work.id FROM {schema}.worker_queue AS work
        WHERE work.instance_id = ANY (p_instances)
        ORDER BY work.id FOR UPDATE
    ) AS locked;
    DELETE FROM {schema}.worker_queue AS work WHERE work.id = ANY (v_work);
    GET DIAGNOSTICS queued = ROW_COUNT;

    -- Work of other instances on a session that ends is withdrawn and not counted.
    DELETE FROM {schema}.worker_queue AS work
    WHERE work.id IN (
        SELECT stray.id
        FROM unnest(v_scopes, v_sessions) AS touched(scope, session_id)
        JOIN {schema}.worker_queue AS stray
          ON stray.session_id = touched.session_id AND stray.session_scope = touched.scope
        WHERE touched.scope = ANY (p_instances) AND touched.scope <> ''
    );
    DELETE FROM {schema}.sessions AS session
    WHERE session.instance_id = ANY (p_instances) AND session.instance_id <> '';
    DELETE FROM {schema}.heads AS head WHERE head.instance_id = ANY (p_instances) AND head.instance_id <> '';
    DELETE FROM {schema}.lines AS line WHERE line.instance_id = ANY (p_instances) AND line.instance_id <> '';
    IF cardinality(v_scopes) > 0 THEN
        PERFORM {schema}.refresh_heads(
            array_agg(touched.scope), array_agg(touched.session_id), p_now
        )
        FROM unnest(v_scopes, v_sessions) AS touched(scope, session_id)
        WHERE touched.scope = '' OR touched.scope <> ALL (p_instances)
        HAVING count(*) > 0;
    END IF;

    DELETE FROM {schema}.orchestrator_queue AS message
    WHERE message.id IN (
        SELECT delayed.id FROM {schema}.orchestrator_queue AS delayed
        WHERE delayed.instance_id = ANY (p_instances) AND delayed.state = 0
        UNION ALL
        SELECT ready.id FROM {schema}.orchestrator_queue AS ready
        WHERE ready.instance_id = ANY (p_instances) AND ready.state = 1
    );
    GET DIAGNOSTICS v_count = ROW_COUNT;
    queued := queued + v_count;
    DELETE FROM {schema}.history AS event WHERE event.instance_id = ANY (p_instances);
    GET DIAGNOSTICS events = ROW_COUNT;
    DELETE FROM {schema}.executions AS execution WHERE execution.instance_id = ANY (p_instances);
    GET DIAGNOSTICS executions = ROW_COUNT;
    DELETE FROM {schema}.kv AS entry WHERE entry.instance_id = ANY (p_instances);
    DELETE FROM {schema}.watchers AS watcher WHERE watcher.instance_id = ANY (p_instances);
    DELETE FROM {schema}.set_aside AS aside WHERE aside.instance_id = ANY (p_instances);
    DELETE FROM {schema}.instances AS instance WHERE instance.instance_id = ANY (p_instances);
    DELETE FROM {schema}.instance_locks AS lock WHERE lock.instance_id = ANY (p_instances);
    RETURN NEXT;
END;
$function$
