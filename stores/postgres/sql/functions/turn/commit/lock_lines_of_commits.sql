-- Locks the `lines` rows of all sessions that commits touch: those that they open, close, end or watch, and
-- those of the work that they queue or withdraw.
-- Locks: `lines` in the order of their keys. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.lock_lines_of_commits(
    p_instances TEXT[], p_session_of INTEGER[], p_session_ops TEXT[], p_session_ids TEXT[],
    p_watch_of INTEGER[], p_watch_scopes TEXT[], p_watch_sessions TEXT[], p_work_scopes TEXT[],
    p_work_sessions TEXT[],
    p_gone_instances TEXT[], p_gone_executions BIGINT[], p_gone_activities BIGINT[]
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_scopes TEXT[];
    v_sessions TEXT[];
BEGIN
    IF cardinality(p_session_of) > 0 OR cardinality(p_watch_of) > 0 OR cardinality(p_gone_instances) > 0
        OR cardinality(array_remove(p_work_sessions, NULL)) > 0
    THEN
        SELECT array_agg(s.scope), array_agg(s.session) INTO v_scopes, v_sessions
        FROM (
            SELECT p_instances[o.of], o.id
            FROM unnest(p_session_of, p_session_ops, p_session_ids) AS o (of, op, id)
            WHERE o.op <> 'end' AND p_instances[o.of] IS NOT NULL
            UNION
            SELECT l.instance_id, l.session_id
            FROM unnest(p_session_of, p_session_ops) AS o (of, op)
            JOIN {schema}.lines AS l ON l.instance_id = p_instances[o.of]
                AND l.instance_id = ANY (p_instances)
            WHERE o.op = 'end'
            UNION
            SELECT w.scope, w.id
            FROM unnest(p_watch_of, p_watch_scopes, p_watch_sessions) AS w (of, scope, id)
            WHERE p_instances[w.of] IS NOT NULL
            UNION
            SELECT w.scope, w.id FROM unnest(p_work_scopes, p_work_sessions) AS w (scope, id)
                WHERE w.id IS NOT NULL
            UNION
            SELECT w.session_scope, w.session_id
            FROM unnest(p_gone_instances, p_gone_executions, p_gone_activities) AS g (instance_id,
                execution_id, activity_id)
            JOIN {schema}.worker_queue AS w
                ON w.instance_id = g.instance_id AND w.execution_id = g.execution_id
                    AND w.activity_id = g.activity_id
            WHERE w.session_id IS NOT NULL AND w.instance_id = ANY (p_gone_instances)
        ) AS s (scope, session);
        IF v_sessions IS NOT NULL THEN
            PERFORM {schema}.lock_lines(v_scopes, v_sessions);
        END IF;
    END IF;
END
$function$
