-- Takes the routes of instances away, because they got messages that need no code: any worker can take the
-- turn (S21). Messages that a refusal has delayed are visible at p_now, because the start of an instance that
-- is to end may be among them; NULL leaves them as they are.
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.open_instances(p_instances TEXT[], p_now BIGINT DEFAULT NULL)
    RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_messages BIGINT[];
BEGIN
    IF p_now IS NOT NULL THEN
        v_messages := ARRAY(
            SELECT unnest(l.refused) FROM {schema}.instance_locks AS l
            WHERE l.instance_id = ANY (p_instances) AND l.refused IS NOT NULL
        );
    END IF;
    UPDATE {schema}.instance_locks AS l
    SET pin = CASE
            WHEN l.pin < -1 THEN coalesce((SELECT p.version FROM {schema}.pins AS p WHERE p.pin = l.pin), -1)
            ELSE l.pin
        END,
        refused = CASE WHEN p_now IS NULL THEN l.refused END
    WHERE l.instance_id = ANY (p_instances) AND (l.pin + 0 < -1 OR l.refused IS NOT NULL);
    IF cardinality(v_messages) > 0 THEN
        UPDATE {schema}.orchestrator_queue AS q SET visible_ms = p_now
        WHERE q.id = ANY (v_messages) AND q.state = 0 AND q.visible_ms > p_now;
        PERFORM {schema}.make_messages_ready(v_messages, p_instances, p_now);
    END IF;
END
$function$
