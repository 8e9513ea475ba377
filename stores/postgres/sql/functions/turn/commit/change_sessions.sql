-- Applies the session changes of commits: opens and closes sessions of the instances in the order of the
-- events, then adds watches (an execution that watches a session gets a message when the session is claimed
-- anew), then ends the watches of executions that have ended (S13).
-- Locks: none. The caller has locked the instances and the `lines` rows.
CREATE OR REPLACE FUNCTION {schema}.change_sessions(
    p_instances TEXT[], p_executions BIGINT[], p_statuses TEXT[], p_session_of INTEGER[],
    p_session_ops TEXT[],
    p_session_ids TEXT[], p_session_idle BIGINT[], p_session_serial BOOLEAN[],
    p_watch_of INTEGER[], p_watch_scopes TEXT[], p_watch_sessions TEXT[], p_now BIGINT
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_op RECORD;
BEGIN
    IF cardinality(p_session_of) > 0 THEN
        FOR v_op IN
            SELECT p_instances[o.of] AS instance_id, o.op, o.id, o.idle, o.serial
            FROM unnest(p_session_of, p_session_ops, p_session_ids, p_session_idle, p_session_serial)
                WITH ORDINALITY AS o (of, op, id, idle, serial, place)
            WHERE p_instances[o.of] IS NOT NULL
              AND (o.op <> 'end' OR (SELECT 1 FROM {schema}.lines AS l WHERE l.instance_id = p_instances[o.of]
                  LIMIT 1) = 1)
            ORDER BY o.place
        LOOP
            CASE v_op.op
                WHEN 'open' THEN
                    PERFORM {schema}.open_session(v_op.instance_id, v_op.id, v_op.idle, v_op.serial, p_now);
                WHEN 'close' THEN
                    PERFORM {schema}.close_session(v_op.instance_id, v_op.id, p_now);
                WHEN 'end' THEN
                    PERFORM {schema}.close_sessions_of(v_op.instance_id, p_now);
            END CASE;
        END LOOP;
    END IF;

    IF cardinality(p_watch_of) > 0 THEN
        PERFORM {schema}.watch_session(w.scope, w.id, p_instances[w.of], p_executions[w.of])
        FROM unnest(p_watch_of, p_watch_scopes, p_watch_sessions) AS w (of, scope, id)
        WHERE p_instances[w.of] IS NOT NULL;
    END IF;

    IF 'Running' <> ANY (p_statuses) THEN
        PERFORM {schema}.unwatch_sessions(c.instance_id, c.execution_id)
        FROM unnest(p_instances, p_executions, p_statuses) AS c (instance_id, execution_id, status)
        WHERE c.status <> 'Running'
          AND (
              SELECT 1 FROM {schema}.watchers AS w
              WHERE w.instance_id = c.instance_id AND w.execution_id = c.execution_id LIMIT 1
          ) = 1;
    END IF;
END
$function$
