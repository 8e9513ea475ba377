-- Commits turns and ends their leases (S3, S4, S7, S8, S10, S12). The arrays from p_tokens to p_kv_clears
-- have one element per commit. The arrays after them hold the events, keys, session changes, watches, new
-- work, withdrawn work and messages of all commits: `..._of` is the number of the commit, from 1, and the
-- order within a commit is kept. p_shows: whether p_custom_statuses counts. p_kv_clears: whether all keys are
-- cleared before some are set. Session ops: `open`, `close`, and `end` for all sessions of the instance. A
-- message without a visible time is visible at once. p_rising: the first event id of a commit whose event ids
-- rise from there; the events of a commit with NULL are checked one by one.
-- p_message_parents, p_message_parent_executions and p_message_parent_events: of the start of a child, and of
-- an answer to a parent, the call of the parent. Such a message carries the life of that parent (S17).
-- p_work_calls: the terms of the calls of new work, and p_message_failures: the failures beside messages
-- (S22).
-- Each commit is judged alone, and a refused one changes nothing. Returns one row per commit, in order, with
-- its instance: `ok` (with its run id, and whether the instance is ready again), `lost` (the token is
-- unknown), `ended` (the lease has expired), `conflict` or `invalid` (`event_at` is the position of the event
-- whose id exists already or is not above 0).
-- Locks: `instance_locks` of the leased instances and of the receivers of messages in the order of
-- instance_id; then `lines` of the sessions that the commits change or whose work they queue or withdraw, in
-- the order of their keys; then `worker_queue` in the order of id.
CREATE OR REPLACE FUNCTION {schema}.commit_turns(
    p_now_ms BIGINT,
    p_tokens TEXT[], p_executions BIGINT[], p_names TEXT[], p_versions TEXT[], p_parents TEXT[],
    p_statuses TEXT[], p_outputs TEXT[], p_failures TEXT[],
    p_majors INTEGER[], p_minors INTEGER[], p_patches INTEGER[],
    p_shows BOOLEAN[], p_custom_statuses TEXT[], p_kv_clears BOOLEAN[],
    p_event_of INTEGER[], p_event_ids BIGINT[], p_event_kinds TEXT[], p_event_texts TEXT[],
    p_kv_of INTEGER[], p_kv_keys TEXT[], p_kv_values TEXT[], p_kv_updated BIGINT[],
    p_session_of INTEGER[], p_session_ops TEXT[], p_session_ids TEXT[], p_session_idle BIGINT[],
    p_session_serial BOOLEAN[],
    p_watch_of INTEGER[], p_watch_scopes TEXT[], p_watch_sessions TEXT[],
    p_work_of INTEGER[], p_work_items TEXT[], p_work_instances TEXT[], p_work_executions BIGINT[],
    p_work_activities BIGINT[], p_work_tags TEXT[], p_work_scopes TEXT[], p_work_sessions TEXT[],
    p_work_traceparents TEXT[],
    p_gone_of INTEGER[], p_gone_instances TEXT[], p_gone_executions BIGINT[], p_gone_activities BIGINT[],
    p_message_of INTEGER[], p_message_instances TEXT[], p_message_items TEXT[], p_message_visible BIGINT[],
    p_message_starts BOOLEAN[], p_message_traceparents TEXT[],
    p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL, p_rising BIGINT[] DEFAULT NULL,
    p_message_parents TEXT[] DEFAULT NULL, p_message_parent_executions BIGINT[] DEFAULT NULL,
    p_message_parent_events BIGINT[] DEFAULT NULL, p_dropped_of INTEGER[] DEFAULT NULL,
    p_dropped_items TEXT[] DEFAULT NULL, p_dropped_due BIGINT[] DEFAULT NULL,
    p_work_calls TEXT[] DEFAULT NULL, p_message_failures TEXT[] DEFAULT NULL
) RETURNS TABLE (code TEXT, instance_id TEXT, run_id BIGINT, event_at INTEGER, ready BOOLEAN)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_at TIMESTAMPTZ := to_timestamp(v_now / 1000.0);
    v_count INTEGER := cardinality(p_tokens);
    -- One element per commit.
    v_codes TEXT[];
    v_holders TEXT[];
    v_event_at INTEGER[];
    -- The instances of the commits that pass; NULL for a refused commit.
    v_instances TEXT[];
    v_runs BIGINT[];
    v_pins BIGINT[];
    -- The state that look_at_commits has read.
    v_plain INTEGER;
    v_fresh BOOLEAN[];
    v_statuses TEXT[];
    v_unnamed BOOLEAN[];
    v_currents BIGINT[];
    v_named TID[];
    v_changed BOOLEAN;
    v_ready TEXT[] := '{}';
    -- The starts of children among the leased messages: who they start, and the calls of their parents.
    v_met_instances TEXT[];
    v_met_parents TEXT[];
    v_met_lives BIGINT[];
    v_met_executions BIGINT[];
    v_met_events BIGINT[];
    v_lives BIGINT[];
    -- The receivers of messages, also those of refused commits.
    v_receivers CONSTANT TEXT[] := p_message_instances;
BEGIN
    IF cardinality(p_message_instances) = 0 THEN
        PERFORM 1 FROM {schema}.instance_locks AS l WHERE l.lock_token = ANY (p_tokens) ORDER BY l.instance_id
            FOR UPDATE;
    ELSE
        PERFORM {schema}.lock_instances(ARRAY(
            SELECT l.instance_id FROM {schema}.instance_locks AS l WHERE l.lock_token = ANY (p_tokens)
        ) || p_message_instances);
    END IF;
    SELECT * INTO v_codes, v_holders, v_plain, v_runs, v_fresh, v_statuses, v_unnamed, v_currents, v_pins,
        v_named, v_changed
    FROM {schema}.look_at_commits(
        p_tokens, p_executions, p_names, p_versions, p_statuses, p_majors, p_minors, p_patches, p_rising,
        v_now
    );
    v_instances := v_holders;
    IF true = ANY (v_unnamed) AND cardinality(array_remove(p_parents, NULL)) > 0 THEN
        v_codes := {schema}.refuse_orphans(v_codes, v_holders, v_unnamed, p_parents);
        IF 'lost' = ANY (v_codes) THEN
            v_plain := 0;
        END IF;
    END IF;
    IF v_count > 1 AND (SELECT count(DISTINCT token) FROM unnest(p_tokens) AS token) < v_count THEN
        v_plain := 0;
    END IF;

    -- Most calls contain no commit that is refused, and skip this.
    IF v_plain < v_count THEN
        SELECT j.codes, j.passed, j.event_at INTO v_codes, v_instances, v_event_at
        FROM {schema}.judge_commits(v_codes, v_holders, p_executions, p_event_of, p_event_ids) AS j;
    END IF;

    IF v_plain < v_count AND NOT ('ok' = ALL (v_codes)) THEN
        SELECT array_agg(w.item), array_agg(w.instance_id), array_agg(w.execution), array_agg(w.activity),
            array_agg(w.tag),
            array_agg(w.scope), array_agg(w.session), array_agg(w.traceparent), array_agg(w.call)
        INTO p_work_items, p_work_instances, p_work_executions, p_work_activities, p_work_tags,
            p_work_scopes, p_work_sessions, p_work_traceparents, p_work_calls
        FROM unnest(p_work_of, p_work_items, p_work_instances, p_work_executions, p_work_activities,
            p_work_tags,
            p_work_scopes, p_work_sessions, p_work_traceparents, p_work_calls)
            AS w (of, item, instance_id, execution, activity, tag, scope, session, traceparent, call)
        WHERE v_instances[w.of] IS NOT NULL;

        SELECT array_agg(g.instance_id), array_agg(g.execution), array_agg(g.activity)
        INTO p_gone_instances, p_gone_executions, p_gone_activities
        FROM unnest(p_gone_of, p_gone_instances, p_gone_executions, p_gone_activities)
            AS g (of, instance_id, execution, activity)
        WHERE v_instances[g.of] IS NOT NULL;

        SELECT array_agg(m.of), array_agg(m.instance_id), array_agg(m.item), array_agg(m.visible),
            array_agg(m.starts), array_agg(m.traceparent), array_agg(m.parent), array_agg(m.execution),
            array_agg(m.event), array_agg(m.failure)
        INTO p_message_of, p_message_instances, p_message_items, p_message_visible, p_message_starts,
            p_message_traceparents, p_message_parents, p_message_parent_executions, p_message_parent_events,
            p_message_failures
        FROM unnest(p_message_of, p_message_instances, p_message_items, p_message_visible, p_message_starts,
            p_message_traceparents, p_message_parents, p_message_parent_executions, p_message_parent_events,
            p_message_failures)
            AS m (of, instance_id, item, visible, starts, traceparent, parent, execution, event, failure)
        WHERE v_instances[m.of] IS NOT NULL;
    END IF;

    IF 'ok' = ANY (v_codes) THEN
        IF cardinality(p_session_of) > 0 OR cardinality(p_watch_of) > 0 OR cardinality(p_gone_instances) > 0
            OR cardinality(array_remove(p_work_sessions, NULL)) > 0
        THEN
            PERFORM {schema}.lock_lines_of_commits(
                v_instances, p_session_of, p_session_ops, p_session_ids, p_watch_of, p_watch_scopes,
                p_watch_sessions,
                p_work_scopes, p_work_sessions, p_gone_instances, p_gone_executions, p_gone_activities
            );
        END IF;

        WITH gone AS (
            DELETE FROM {schema}.orchestrator_queue AS q
            WHERE q.id = ANY (ARRAY(
                SELECT unnest(l.leased)
                FROM unnest(v_instances) AS t (id)
                CROSS JOIN LATERAL (
                    SELECT l.leased FROM {schema}.instance_locks AS l WHERE l.instance_id = t.id OFFSET 0
                ) AS l
            ))
            RETURNING q.instance_id, q.starts, q.parent_instance_id AS parent, q.parent_life AS life,
                q.parent_execution_id AS execution, q.parent_event_id AS event
        )
        SELECT array_agg(gone.instance_id), array_agg(gone.parent), array_agg(gone.life),
            array_agg(gone.execution), array_agg(gone.event)
        INTO v_met_instances, v_met_parents, v_met_lives, v_met_executions, v_met_events
        FROM gone WHERE gone.starts AND gone.life IS NOT NULL;

        v_pins := {schema}.record_commits(
            v_instances, p_executions, p_names, p_versions, p_parents, p_statuses, p_outputs, p_failures,
            p_majors, p_minors, p_patches, p_shows, p_custom_statuses,
            v_runs, v_fresh, v_statuses, v_unnamed, v_currents, v_pins, v_named, v_changed, v_at,
            v_met_instances, v_met_parents, v_met_lives
        );

        INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data, created_at)
        SELECT v_instances[e.of], p_executions[e.of], e.id, e.kind, e.text, v_at
        FROM unnest(p_event_of, p_event_ids, p_event_kinds, p_event_texts) AS e (of, id, kind, text)
        WHERE v_instances[e.of] IS NOT NULL;

        IF cardinality(p_kv_of) > 0 OR true = ANY (p_kv_clears) OR 'Running' <> ANY (p_statuses) THEN
            PERFORM {schema}.change_kv(v_instances, p_statuses, p_kv_clears, p_kv_of, p_kv_keys, p_kv_values,
                p_kv_updated);
        END IF;
        IF cardinality(p_session_of) > 0 OR cardinality(p_watch_of) > 0 OR 'Running' <> ANY (p_statuses) THEN
            PERFORM {schema}.change_sessions(
                v_instances, p_executions, p_statuses, p_session_of, p_session_ops, p_session_ids,
                p_session_idle,
                p_session_serial, p_watch_of, p_watch_scopes, p_watch_sessions, v_now
            );
        END IF;
        IF cardinality(p_work_items) > 0 THEN
            PERFORM {schema}.queue_work(
                p_work_items, p_work_instances, p_work_executions, p_work_activities, p_work_tags,
                p_work_scopes, p_work_sessions, p_work_traceparents, v_now, p_work_calls
            );
        END IF;
        IF cardinality(p_gone_instances) > 0 THEN
            PERFORM {schema}.withdraw_work(p_gone_instances, p_gone_executions, p_gone_activities, v_now);
        END IF;
        IF cardinality(p_message_instances) > 0 THEN
            IF cardinality(array_remove(p_message_parents, NULL)) > 0 THEN
                v_lives := {schema}.lives_of_messages(
                    v_instances, p_message_of, p_message_starts, p_message_parents,
                    p_message_parent_executions, p_message_parent_events, v_met_instances, v_met_parents,
                    v_met_lives, v_met_executions, v_met_events
                );
            END IF;
            PERFORM {schema}.queue_messages(
                p_message_instances, p_message_items, p_message_visible, p_message_starts,
                p_message_traceparents, v_now, p_message_parents, v_lives, p_message_parent_executions,
                p_message_parent_events, p_failures => p_message_failures
            );
        END IF;
        IF cardinality(p_dropped_of) > 0 THEN
            PERFORM {schema}.drop_timers(v_instances, p_dropped_of, p_dropped_items, p_dropped_due);
        END IF;
        v_ready := {schema}.free_turns(v_instances, v_now, v_pins);
        IF p_notify IS NOT NULL THEN
            PERFORM {schema}.notify(p_notify, p_me);
        END IF;
    END IF;

    IF cardinality(v_receivers) > 0 AND NOT ('ok' = ALL (v_codes)) THEN
        -- The rows that were made to lock the receivers of refused commits go again.
        PERFORM {schema}.forget_instances(v_receivers);
    END IF;

    RETURN QUERY
    SELECT c.code, c.instance_id, c.run_id, c.event_at, c.code = 'ok' AND c.instance_id = ANY (v_ready)
    FROM unnest(v_codes, v_holders, v_runs, v_event_at)
        WITH ORDINALITY AS c (code, instance_id, run_id, event_at, place)
    ORDER BY c.place;
END
$function$
