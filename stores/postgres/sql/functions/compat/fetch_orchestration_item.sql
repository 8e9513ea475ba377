-- Leases the instance with the oldest visible message (S1, S2, S5, S9, S17, S18); no row when there is none. Engine versions
-- are packed as major * 1000000 + minor * 1000 + patch: an execution that is pinned to one outside of the bounds is passed over.
-- NULL bounds nothing, and what is pinned to nothing runs anywhere.
--
-- Columns: out_instance_id, out_orchestration_name and out_orchestration_version ('unknown' if nobody has said it),
-- out_execution_id, out_history (events of that execution in their order), out_messages (in order of arrival),
-- out_lock_token, out_attempt_count (of the message that was fetched most often), out_kv_snapshot (what earlier executions
-- left: key, value, last_updated_at_ms). Raises SF013 without p_lock_timeout_ms.
-- Locks: instance_locks, skipping what others have locked.
CREATE OR REPLACE FUNCTION {schema}.fetch_orchestration_item(
    p_now_ms BIGINT, p_lock_timeout_ms BIGINT,
    p_min_version_packed BIGINT DEFAULT NULL, p_max_version_packed BIGINT DEFAULT NULL
) RETURNS TABLE(
    out_instance_id TEXT, out_orchestration_name TEXT, out_orchestration_version TEXT,
    out_execution_id BIGINT,
    out_history TEXT[], out_messages TEXT[], out_lock_token TEXT, out_attempt_count INTEGER,
    out_kv_snapshot JSON
)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    v_pins BIGINT[];
    v_turn RECORD;
BEGIN
    IF p_lock_timeout_ms IS NULL THEN
        -- A lease without an end would never be given to anybody else.
        RAISE EXCEPTION 'p_lock_timeout_ms is required' USING ERRCODE = 'SF013';
    END IF;
    IF p_min_version_packed IS NOT NULL OR p_max_version_packed IS NOT NULL THEN
        -- Never empty, because an empty list of versions means that the caller can run nothing at all.
        v_pins := ARRAY(
            SELECT pins.pin FROM {schema}.pins
            WHERE pins.pin = -1
               OR {schema}.packed_of(pins.pin) BETWEEN coalesce(p_min_version_packed, 0)
                  AND coalesce(p_max_version_packed, 9223372036854775807)
        );
    END IF;
    SELECT t.* INTO v_turn
    FROM {schema}.fetch_turns(p_now_ms, p_lock_timeout_ms, 1, v_pins, v_pins) AS t WHERE t.kind = 'turn';
    IF NOT FOUND THEN
        RETURN;
    END IF;

    out_instance_id := v_turn.instance_id;
    out_execution_id := v_turn.execution_id;
    out_lock_token := v_turn.token;
    out_messages := v_turn.items;
    out_attempt_count := (SELECT max(attempt) FROM unnest(v_turn.attempts) AS attempt);
    out_history := ARRAY(
        SELECT h.event_data FROM {schema}.history AS h
        WHERE h.instance_id = v_turn.instance_id AND h.execution_id = v_turn.execution_id ORDER BY h.event_id
    );
    SELECT named.name, named.version INTO out_orchestration_name, out_orchestration_version
    FROM {schema}.name_of_turn(v_turn.name, v_turn.version, out_history, out_messages) AS named;
    out_kv_snapshot := (
        SELECT coalesce(
            json_agg(json_build_object('key', k.key, 'value', k.value, 'last_updated_at_ms', k.updated_ms)
                ORDER BY k.key), '[]'
        )
        FROM {schema}.kv AS k WHERE k.instance_id = v_turn.instance_id AND k.layer = 0
    );
    RETURN NEXT;
END
$function$
