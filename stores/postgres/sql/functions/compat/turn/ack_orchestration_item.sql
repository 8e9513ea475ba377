-- Compatible function: commits a turn and ends its lease (S3, S4, S7, S8, S12). Changes of key-value state,
-- custom status and sessions are read from the events. A status of 'Running' clears the end of the execution,
-- and a parent that is named later than by the first commit is recorded, if there is none yet.
-- p_history_delta: array of {event_id, event_type, event_data}, where event_data is the event as text.
-- p_worker_items and p_orchestrator_items: arrays of work items. A TimerFired becomes visible at its
-- fire_at_ms, every other message at once. p_metadata: {orchestration_name, orchestration_version,
-- parent_instance_id, status, output, pinned_duroxide_version: {major, minor, patch} or null}.
-- p_cancelled_activities: array of {instance, execution_id, activity_id}. NULL and [] mean no elements.
-- Raises SF001 if the token is unknown or its lease has expired, SF009 if an event id exists already, SF010
-- if an event lacks a field, SF011 and SF012 if a work item is in the array of the other queue.
-- Locks: those of commit_turns, whose row of `instances` it writes again.
CREATE OR REPLACE FUNCTION {schema}.ack_orchestration_item(
    p_lock_token TEXT, p_now_ms BIGINT, p_execution_id BIGINT, p_history_delta JSONB, p_worker_items JSONB,
    p_orchestrator_items JSONB, p_metadata JSONB, p_cancelled_activities JSONB DEFAULT '[]'
) RETURNS VOID
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    v_instance TEXT := (SELECT l.instance_id FROM {schema}.instance_locks AS l
        WHERE l.lock_token = p_lock_token);
    v_pin      JSONB := CASE WHEN jsonb_typeof(p_metadata->'pinned_duroxide_version') = 'object'
                        THEN p_metadata->'pinned_duroxide_version' END;
    v_events   RECORD;
    v_effects  RECORD;
    v_work     RECORD;
    v_sent     RECORD;
    v_gone     RECORD;
    v_code     TEXT;
BEGIN
    IF v_instance IS NULL THEN
        RAISE EXCEPTION 'Invalid lock token' USING ERRCODE = 'SF001';
    END IF;
    PERFORM {schema}.check_history_delta(p_history_delta);
    v_events := {schema}.events_of_delta(p_history_delta);
    v_effects := {schema}.effects_of_events(v_events.texts);
    v_work := {schema}.work_of_items(p_worker_items);
    v_sent := {schema}.messages_of_items(p_orchestrator_items, v_instance);
    v_gone := {schema}.activities_of_json(p_cancelled_activities);
    SELECT t.code INTO v_code
    FROM {schema}.commit_turns(
        p_now_ms,
        ARRAY[p_lock_token], ARRAY[p_execution_id], ARRAY[p_metadata->>'orchestration_name'],
        ARRAY[p_metadata->>'orchestration_version'], ARRAY[p_metadata->>'parent_instance_id'],
        ARRAY[p_metadata->>'status'], ARRAY[p_metadata->>'output'], ARRAY[v_effects.failure],
        ARRAY[(v_pin->>'major')::INTEGER], ARRAY[(v_pin->>'minor')::INTEGER],
        ARRAY[(v_pin->>'patch')::INTEGER],
        ARRAY[v_effects.shows], ARRAY[v_effects.custom_status], ARRAY[v_effects.kv_clears],
        v_events.ones, v_events.ids, v_events.kinds, v_events.texts,
        v_effects.kv_ones, v_effects.kv_keys, v_effects.kv_values, v_effects.kv_updated,
        v_effects.session_ones, v_effects.session_ops, v_effects.session_ids, v_effects.session_idle,
        v_effects.session_serial,
        '{}', '{}', '{}',
        v_work.ones, v_work.items, v_work.instances, v_work.executions, v_work.activities, v_work.tags,
        v_work.scopes,
        v_work.sessions, v_work.traceparents,
        v_gone.ones, v_gone.instances, v_gone.executions, v_gone.activities,
        v_sent.ones, v_sent.instances, v_sent.items, v_sent.visible, v_sent.starts, v_sent.traceparents,
        {schema}.everything(), p_message_parents => v_sent.parents,
        p_message_parent_executions => v_sent.parent_executions,
        p_message_parent_events => v_sent.parent_events
    ) AS t;
    CASE v_code
        WHEN 'ok' THEN
            IF p_metadata->>'status' = 'Running' THEN
                UPDATE {schema}.executions AS e SET completed_at = NULL
                WHERE e.instance_id = v_instance AND e.execution_id = p_execution_id
                  AND e.completed_at IS NOT NULL;
            END IF;
            IF p_metadata->>'parent_instance_id' IS NOT NULL
                AND p_metadata->>'orchestration_name' IS NOT NULL
                AND p_metadata->>'orchestration_version' IS NOT NULL
            THEN
                UPDATE {schema}.instances AS i
                SET parent_instance_id = p_metadata->>'parent_instance_id',
                    is_orphan = (
                        SELECT 1 FROM {schema}.instances AS p
                        WHERE p.instance_id = p_metadata->>'parent_instance_id'
                    ) IS NULL
                WHERE i.instance_id = v_instance AND i.parent_instance_id IS NULL;
            END IF;
        WHEN 'conflict' THEN
            RAISE EXCEPTION 'Event id already exists in execution % of instance ''%''', p_execution_id,
                v_instance
                USING ERRCODE = 'SF009';
        WHEN 'invalid' THEN
            RAISE EXCEPTION
                'Each event of a history delta needs an event_id above 0, an event_type and event_data'
                USING ERRCODE = 'SF010';
        ELSE
            RAISE EXCEPTION 'Invalid lock token' USING ERRCODE = 'SF001';
    END CASE;
END
$function$
