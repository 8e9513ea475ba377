-- Forgets leases that no call can ask for any more: of withdrawn work after their time, and expired ones
-- whose messages or work are gone. Handles a bounded number; expired leases whose rows are still there are
-- looked at again after an hour.
-- Locks: `ended_leases`, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.forget_leases(p_now_ms BIGINT DEFAULT NULL) RETURNS VOID
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_bound CONSTANT INTEGER := 256;
    v_tokens TEXT[];
BEGIN
    v_tokens := ARRAY(
        SELECT e.token FROM {schema}.ended_leases AS e
        WHERE e.until_ms <= v_now
        ORDER BY e.until_ms LIMIT v_bound
        FOR UPDATE SKIP LOCKED
    );
    IF cardinality(v_tokens) = 0 THEN
        RETURN;
    END IF;
    DELETE FROM {schema}.ended_leases AS e
    WHERE e.token = ANY (v_tokens)
      AND (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.id = ANY (e.messages) LIMIT 1) IS NULL
      AND (SELECT 1 FROM {schema}.worker_queue AS w WHERE w.id = e.work_id) IS NULL;
    UPDATE {schema}.ended_leases AS e SET until_ms = v_now + 3600000 WHERE e.token = ANY (v_tokens);
END
$function$
