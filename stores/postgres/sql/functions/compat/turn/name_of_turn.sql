-- Returns name and version of the orchestration of a leased instance: from its row, else from the
-- OrchestrationStarted event in its history, else from the first start among its messages, else 'unknown'.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.name_of_turn(p_name TEXT, p_version TEXT, p_history TEXT[],
    p_messages TEXT[])
RETURNS TABLE(name TEXT, version TEXT)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    v_start JSONB;
BEGIN
    IF p_name IS NOT NULL THEN
        RETURN QUERY SELECT p_name, p_version;
        RETURN;
    END IF;
    SELECT event.item INTO v_start
    FROM (SELECT {schema}.item_of(text) AS item, place FROM unnest(p_history)
        WITH ORDINALITY AS h (text, place)) AS event
    WHERE event.item->>'type' = 'OrchestrationStarted' ORDER BY event.place LIMIT 1;
    IF FOUND THEN
        RETURN QUERY SELECT v_start->>'name', v_start->>'version';
        RETURN;
    END IF;
    SELECT message.item->{schema}.kind_of_item(message.item) INTO v_start
    FROM (SELECT {schema}.item_of(text) AS item, place FROM unnest(p_messages)
        WITH ORDINALITY AS m (text, place)) AS message
    WHERE {schema}.starts_an_execution(message.item) ORDER BY message.place LIMIT 1;
    RETURN QUERY SELECT coalesce(v_start->>'orchestration', 'unknown'),
        coalesce(v_start->>'version', 'unknown');
END
$function$
