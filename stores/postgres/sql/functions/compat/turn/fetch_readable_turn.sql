-- Leases the ready instance with the oldest message, as fetch_turns does, and passes over messages that the
-- database cannot read (S15). p_pins: the pins that the caller can run, NULL for all. No row if none is
-- ready.
-- Locks: those of fetch_turns and pass_over_messages: `instance_locks`, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.fetch_readable_turn(
    p_now_ms BIGINT, p_lock_ms BIGINT, p_pins BIGINT[]
) RETURNS TABLE(
    token TEXT, instance_id TEXT, name TEXT, version TEXT, execution_id BIGINT, items TEXT[], attempt INTEGER
)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    -- The most leases that it looks at.
    v_passes CONSTANT INTEGER := 16;
    v_retry_ms CONSTANT BIGINT := 5000;
    -- NULL if texts were not read in time, which are neither counted nor set aside: they may be whole.
    v_max_attempts INTEGER := 10;
    v_reason CONSTANT TEXT := 'the database cannot read its text: it is damaged';
    v_is_careful BOOLEAN := false;
    v_turn RECORD;
    v_lost BIGINT[];
BEGIN
    FOR v_pass IN 1..v_passes LOOP
        BEGIN
            SELECT t.* INTO v_turn
            FROM {schema}.fetch_turns(p_now_ms, p_lock_ms, 1, p_pins, p_pins, p_careful => v_is_careful) AS t
            WHERE t.kind = 'turn';
        EXCEPTION WHEN data_corrupted OR index_corrupted THEN
            -- A message failed the fetch: the next one leases it without its text.
            IF v_is_careful THEN
                RAISE;
            END IF;
            v_is_careful := true;
            CONTINUE;
        WHEN query_canceled THEN
            -- A message took all the time: the next fetch leases it without reading any text.
            IF v_is_careful OR NOT {schema}.is_statement_over() THEN
                RAISE;
            END IF;
            v_is_careful := true;
            v_max_attempts := NULL;
            CONTINUE;
        END;
        IF v_turn.token IS NULL THEN
            RETURN;
        END IF;
        SELECT array_agg(m.item ORDER BY m.place), max(m.attempt) INTO items, attempt
        FROM unnest(v_turn.items, v_turn.attempts) WITH ORDINALITY AS m (item, attempt, place)
        WHERE m.item IS NOT NULL;
        v_lost := ARRAY(
            SELECT m.id FROM unnest(v_turn.ids, v_turn.items) AS m (id, item) WHERE m.item IS NULL
        );
        IF cardinality(v_lost) > 0 THEN
            PERFORM {schema}.pass_over_messages(
                v_turn.token, v_lost, array_fill(v_reason, ARRAY[cardinality(v_lost)]), v_retry_ms,
                v_max_attempts, p_now_ms, array_fill(true, ARRAY[cardinality(v_lost)])
            );
            -- Without time no other text can be read either.
            EXIT WHEN v_max_attempts IS NULL;
            CONTINUE WHEN items IS NULL;
            IF v_turn.name IS NULL AND v_turn.last_event_id = 0 AND (
                SELECT 1 FROM unnest(items) AS m (item)
                WHERE {schema}.starts_an_execution({schema}.item_of(m.item)) LIMIT 1
            ) IS NULL THEN
                -- The start was passed over: the other messages wait for it, or have no instance.
                PERFORM {schema}.abandon_turns(ARRAY[v_turn.token], '{NULL}', '{true}', p_now_ms);
                CONTINUE;
            END IF;
        END IF;
        token := v_turn.token;
        instance_id := v_turn.instance_id;
        name := v_turn.name;
        version := v_turn.version;
        execution_id := v_turn.execution_id;
        RETURN NEXT;
        RETURN;
    END LOOP;
END
$function$
