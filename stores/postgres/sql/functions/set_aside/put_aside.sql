-- Sets rows aside that could not be read, each with the reason (S15). Queue 0 are messages, 1 is work.
-- Locks: none; the caller has locked the rows that it moves here.
CREATE OR REPLACE FUNCTION {schema}.put_aside(
    p_queue SMALLINT, p_instances TEXT[], p_payloads TEXT[], p_reasons TEXT[], p_attempts INTEGER[], p_now BIGINT
) RETURNS VOID
LANGUAGE sql AS $function$
    INSERT INTO {schema}.set_aside (queue, instance_id, payload, reason, attempts, at_ms)
    SELECT p_queue, unread.instance_id, unread.payload, unread.reason, unread.attempts, p_now
    FROM unnest(p_instances, p_payloads, p_reasons, p_attempts)
        WITH ORDINALITY AS unread (instance_id, payload, reason, attempts, place)
    ORDER BY unread.place
$function$
