-- Takes the delivery of an expired lease of an instance off the count of the messages that it carried and
-- that are still there (S5). Works once for a token, whoever holds the instance now; a lease that expired and
-- was not swept yet ends uncounted. Returns whether a delivery was taken off.
-- Locks: `instance_locks` of the instance, then the row of `ended_leases`.
CREATE OR REPLACE FUNCTION {schema}.excuse_turn(p_token TEXT, p_now_ms BIGINT DEFAULT NULL) RETURNS BOOLEAN
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_lock {schema}.instance_locks;
    v_messages BIGINT[];
BEGIN
    SELECT l.* INTO v_lock FROM {schema}.instance_locks AS l WHERE l.lock_token = p_token FOR UPDATE;
    IF FOUND THEN
        IF v_lock.locked_until > {schema}.now_ms(p_now_ms) THEN
            RETURN false;
        END IF;
        PERFORM {schema}.free_turns(ARRAY[v_lock.instance_id], v_lock.locked_until);
        RETURN true;
    END IF;
    PERFORM 1 FROM {schema}.instance_locks AS l
    WHERE l.instance_id = (SELECT e.instance_id FROM {schema}.ended_leases AS e WHERE e.token = p_token)
    FOR UPDATE;
    DELETE FROM {schema}.ended_leases AS e WHERE e.token = p_token AND e.reason = 0
    RETURNING e.messages INTO v_messages;
    UPDATE {schema}.orchestrator_queue AS q SET attempt_count = greatest(q.attempt_count - 1, 0)
    WHERE q.id = ANY (v_messages);
    RETURN FOUND;
END
$function$
