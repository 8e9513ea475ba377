-- Compatible function: leases the ready instance with the oldest message (S1, S2, S5, S9, S17, S18). No row
-- if none is ready. The bounds are engine versions, packed as major * 1000000 + minor * 1000 + patch: an
-- execution that is pinned to a version outside of the bounds is not leased. A NULL bound is no bound, and an
-- execution that is not pinned always fits.
-- Columns: out_instance_id, out_orchestration_name and out_orchestration_version ('unknown' if neither row,
-- history nor messages name them), out_execution_id, out_history (events in the order of their ids; if the
-- database cannot read them all, one element that is no event and says so),
-- out_messages (in the order of S2), out_lock_token, out_attempt_count (the highest delivery count of the
-- messages), out_kv_snapshot (key, value and last_updated_at_ms as earlier executions left them). Raises
-- SF013 if p_lock_timeout_ms is NULL.
-- Messages that the database cannot read are passed over (S15).
-- Locks: those of fetch_readable_turn: `instance_locks`, skipping locked rows.
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
        -- A lease that never expires would block the row for ever.
        RAISE EXCEPTION 'p_lock_timeout_ms is required' USING ERRCODE = 'SF013';
    END IF;
    IF p_min_version_packed IS NOT NULL OR p_max_version_packed IS NOT NULL THEN
        -- Pin -1 (not pinned) keeps the list from being empty: an empty list means that the caller can run
        -- nothing.
        v_pins := ARRAY(
            SELECT pins.pin FROM {schema}.pins
            WHERE pins.pin = -1 OR (pins.pin > -1
                AND {schema}.packed_of(pins.pin) BETWEEN coalesce(p_min_version_packed, 0)
                  AND coalesce(p_max_version_packed, 9223372036854775807))
        );
    END IF;
    SELECT t.* INTO v_turn FROM {schema}.fetch_readable_turn(p_now_ms, p_lock_timeout_ms, v_pins) AS t;
    IF NOT FOUND THEN
        RETURN;
    END IF;

    out_instance_id := v_turn.instance_id;
    out_execution_id := v_turn.execution_id;
    out_lock_token := v_turn.token;
    out_messages := v_turn.items;
    out_attempt_count := v_turn.attempt;
    BEGIN
        out_history := ARRAY(
            SELECT h.event_data FROM {schema}.history AS h
            WHERE h.instance_id = v_turn.instance_id AND h.execution_id = v_turn.execution_id
            ORDER BY h.event_id
        );
        out_kv_snapshot := (
            SELECT coalesce(
                json_agg(json_build_object('key', k.key, 'value', k.value, 'last_updated_at_ms', k.updated_ms)
                    ORDER BY k.key), '[]'
            )
            FROM {schema}.kv AS k WHERE k.instance_id = v_turn.instance_id AND k.layer = 0
        );
    EXCEPTION WHEN data_corrupted OR index_corrupted THEN
        -- An error would undo the lease, and the instance would be the oldest for every fetch (S15).
        out_history := ARRAY['the database cannot read the history: ' || SQLERRM];
        out_kv_snapshot := '[]';
    END;
    SELECT named.name, named.version INTO out_orchestration_name, out_orchestration_version
    FROM {schema}.name_of_turn(v_turn.name, v_turn.version, out_history, out_messages) AS named;
    RETURN NEXT;
END
$function$
